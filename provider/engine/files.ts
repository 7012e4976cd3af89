import { randomUUID } from "node:crypto";
import { open, readFile, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { fileFailureText } from "@gatehouse-access/sdk/errors";
import { parseJson } from "@gatehouse-access/sdk/json";
import { parse } from "yaml";
import { BackendError, type EngineError, ProjectError } from "./errors.ts";

/**
 * Replaces the content of a file atomically: after a crash, the file contains either the complete old content or the
 * complete new content.
 * @param before called when the new content is on disk but the file still has the old content
 */
export async function writeDurably(
  path: string,
  content: string | Uint8Array,
  before = async (): Promise<void> => {},
): Promise<void> {
  const temporary = `${path}.${randomUUID()}.tmp`;
  const file = await open(temporary, "w", 0o600);
  try {
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await before();
    await rename(temporary, path);
  } catch (error) {
    // Removes the temporary file, since this file would use space on a full disk.
    await removeIfThere(temporary);
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Syncs a directory, so that new, renamed and removed entries are durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * Returns the result of an operation on a file or directory. Returns undefined if the file or directory does not exist.
 */
export async function ifThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isNoSuchFile(error)) return undefined;
    throw error;
  }
}

export async function removeIfThere(path: string): Promise<void> {
  await ifThere(unlink(path));
}

/**
 * Returns the content of a text file. Returns undefined if the file does not exist. @throws Failure if the file cannot
 * be read
 */
export async function readIfThere(
  path: string,
  Failure: new (detail: string) => EngineError,
): Promise<string | undefined> {
  return ifThere(readFile(path, "utf8")).catch((error: Error) => {
    throw new Failure(fileFailureText("read", path, error));
  });
}

/** Parses a JSON file of Pulumi. @throws BackendError if the content is not valid JSON */
export function parseJsonFile(text: string, path: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    throw new BackendError(`${path} is not valid JSON: ${(error as Error).message}`);
  }
}

export function isNoSuchFile(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === "ENOENT";
}

/**
 * Parses a YAML mapping. An empty string is parsed as an empty mapping.
 * @throws ProjectError if the string is not valid YAML or not a mapping
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

export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function asMap(value: unknown): Record<string, unknown> {
  return isMap(value) ? value : {};
}
