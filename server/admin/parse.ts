import type { z } from "zod";
import { InvalidError } from "../http/errors.ts";

/**
 * What a command sent, checked.
 * @throws InvalidError with a line for each problem
 */
export function parse<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`);
  throw new InvalidError(problems.join("\n"));
}
