import { issueText } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { InvalidError } from "../errors.ts";
import { checkTexts } from "../http/contract/validation.ts";

/**
 * Validates the request of an admin command against its schema.
 * @throws InvalidError a field is invalid; the error's message has a line for each invalid field
 */
export function parseRequest<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const parsed = schema.safeParse(body, { error: issueText });
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => `${issue.path.join(".")} ${issue.message}`);
    throw new InvalidError(problems.join("\n"));
  }
  checkTexts(parsed.data, "");
  return parsed.data;
}
