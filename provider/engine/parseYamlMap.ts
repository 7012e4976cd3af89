import { parse } from "yaml";
import { ProjectError } from "./errors.ts";

/** Parses a YAML mapping; `where` names the file in errors. Throws ProjectError. */
export function parseYamlMap(text: string, where: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = parse(text, { merge: true });
  } catch (error) {
    throw new ProjectError(`${where} is not valid YAML: ${(error as Error).message}`);
  }
  if (parsed === undefined || parsed === null) return {};
  if (typeof parsed !== "object" || Array.isArray(parsed))
    throw new ProjectError(`${where} must be a mapping.`);
  return parsed as Record<string, unknown>;
}
