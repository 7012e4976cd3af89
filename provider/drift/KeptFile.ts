import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseJson } from "@gatehouse-access/sdk/json";
import { EngineError, ifThere, writeDurably } from "../engine/index.ts";

/** Where a run of drift keeps something of a stack beside its program; of `organization/project/stack` the last part counts. */
export const keptPath = (folder: string, what: "seen" | "notified", stack: string): string =>
  join(folder, `access.${what}.${stack.split("/").at(-1)}.json`);

/** What a run of drift keeps for the next one: an object, as JSON. */
export class KeptFile<T extends object> {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Undefined if there is no file. @throws EngineError (`project`) if the file cannot be read or understood */
  async read(): Promise<Partial<T> | undefined> {
    try {
      const text = await ifThere(readFile(this.#path, "utf8"));
      if (text === undefined) return undefined;
      const kept: unknown = parseJson(text);
      if (typeof kept !== "object" || kept === null) throw new Error("it holds no object");
      return kept as Partial<T>;
    } catch (error) {
      throw this.#cannot("read", error);
    }
  }

  /** Replaces the whole file or nothing. @throws EngineError (`project`) if the file cannot be written */
  async write(kept: T): Promise<void> {
    try {
      await writeDurably(this.#path, `${JSON.stringify(kept, null, 2)}\n`);
    } catch (error) {
      throw this.#cannot("written", error);
    }
  }

  #cannot(what: string, cause: unknown): EngineError {
    return new EngineError("project", `${this.#path} cannot be ${what}: ${(cause as Error).message}`, {
      cause,
    });
  }
}

export type SeenTimes = Readonly<Record<string, string>>;

/**
 * When runs first found things, for services that keep no trail. The file then holds what this run found.
 * @param names what this run found
 * @throws EngineError (`project`) if the file cannot be read or written
 */
export async function firstSeen(file: KeptFile<SeenTimes>, names: readonly string[]): Promise<SeenTimes> {
  const before = new Map(Object.entries((await file.read()) ?? {}));
  const now = new Date().toISOString();
  const seen = Object.fromEntries(names.toSorted().map((name) => [name, before.get(name) ?? now]));
  await file.write(seen);
  return seen;
}
