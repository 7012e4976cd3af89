import { parse } from "yaml";
import { ProjectError } from "./errors.ts";

/**
 * Parses a YAML mapping; an empty text is an empty one.
 * @param where names the file in errors
 * @throws ProjectError where the text is no YAML, or something else than a mapping
 */
export function parseYamlMap(text: string, where: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = parse(text, { merge: true });
  } catch (error) {
    throw new ProjectError(`${where} is not valid YAML: ${(error as Error).message}`);
  }
  if (parsed === undefined || parsed === null) return {};
  if (!isMap(parsed)) throw new ProjectError(`${where} must be a mapping.`);
  return parsed;
}

/** True for a parsed mapping. */
export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The mapping; an empty one for anything else. */
export function asMap(value: unknown): Record<string, unknown> {
  return isMap(value) ? value : {};
}
