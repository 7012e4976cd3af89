import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseJson } from "@gatehouse-access/sdk/json";
import { EngineError, fileError, ifThere, writeDurably } from "../engine/index.ts";

/**
 * Returns the path of a file in the project directory. In this file, `drift` stores the data of a stack for its next
 * run. If the stack name is `organization/project/stack`, the file name contains only `stack`.
 */
export const keptPath = (folder: string, what: "seen" | "notified", stack: string): string =>
  join(folder, `access.${what}.${stack.split("/").at(-1)}.json`);

/** A JSON file in which `drift` stores an object for its next run. */
export class KeptFile<T extends object> {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Reads the object. Returns undefined if the file does not exist.
   * @throws EngineError (`project`) if the file cannot be read or parsed
   */
  async read(): Promise<Partial<T> | undefined> {
    const read = ifThere(readFile(this.#path, "utf8"));
    const text = await read.catch(fileError("project", "read", this.#path));
    if (text === undefined) return undefined;
    try {
      const kept: unknown = parseJson(text);
      if (typeof kept === "object" && kept !== null) return kept as Partial<T>;
    } catch {
      // Invalid JSON is reported below.
    }
    throw new EngineError("project", `Cannot read ${this.#path}: it is not a JSON object.`, {
      remedy: "Delete the file. The next run creates the file again.",
    });
  }

  /** Replaces the file atomically. @throws EngineError (`project`) if the file cannot be written */
  async write(kept: T): Promise<void> {
    const written = writeDurably(this.#path, `${JSON.stringify(kept, null, 2)}\n`);
    await written.catch(fileError("project", "write", this.#path));
  }
}

/** The time at which `drift` first found each object, by object name. The times have the format RFC 3339 in UTC. */
export type SeenTimes = Readonly<Record<string, string>>;

/**
 * Returns the time at which `drift` first found each object, for services without an audit trail. Replaces the file, so
 * that it contains only the objects of this run.
 * @param names the objects that this run found
 * @throws EngineError (`project`) if the file cannot be read or written
 */
export async function firstSeen(file: KeptFile<SeenTimes>, names: readonly string[]): Promise<SeenTimes> {
  const before = new Map(Object.entries((await file.read()) ?? {}));
  const now = new Date().toISOString();
  const seen = Object.fromEntries(names.toSorted().map((name) => [name, before.get(name) ?? now]));
  await file.write(seen);
  return seen;
}
