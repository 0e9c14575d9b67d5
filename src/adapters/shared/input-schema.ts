/** A tool's schema as providers accept it: that of an object, with properties, which JSON Schema lets one leave out (SPEC 12.2). */
export function inputSchema(parameters: unknown): Record<string, unknown> {
  return { type: "object", properties: {}, ...Object(parameters) };
}
