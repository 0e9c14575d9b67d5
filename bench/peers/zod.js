/** The tool's parameters for the peers that take Zod. */
import { z } from "zod";

export const parametersOf = ({ name }) =>
  z.object(name === "bigArguments" ? { x: z.number(), lines: z.array(z.string()) } : { x: z.number() });
