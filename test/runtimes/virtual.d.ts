declare module "virtual:core-suite" {
  const files: Record<string, () => Promise<unknown>>;
  export default files;
}
