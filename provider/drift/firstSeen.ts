import { readFile, writeFile } from "node:fs/promises";
import { EngineError } from "../engine/index.ts";

type Times = Readonly<Record<string, string>>;

/**
 * When runs first found things, for services that keep no trail: in a file, which holds what the latest run found. Nothing
 * is read or written before somebody asks.
 */
export class FirstSeen {
  readonly #file: string;
  readonly #now: Date;
  readonly #found = new Map<string, string>();
  #before: Promise<Times> | undefined;

  constructor(file: string, now = new Date()) {
    this.#file = file;
    this.#now = now;
  }

  /**
   * By name, when a run found it first: RFC 3339 in UTC.
   * @param names what this run found
   * @throws EngineError (`project`) where the file cannot be read or understood
   */
  async of(names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    this.#before ??= read(this.#file);
    const before = await this.#before;
    for (const name of names) this.#found.set(name, before[name] ?? this.#now.toISOString());
    return this.#found;
  }

  /** Keeps it for later runs. @throws EngineError (`project`) where the file cannot be written */
  async save(): Promise<void> {
    if (!this.#before) return;
    const text = JSON.stringify(Object.fromEntries([...this.#found].sort()), null, 2);
    try {
      await writeFile(this.#file, `${text}\n`);
    } catch (error) {
      throw cannot(`be written: ${(error as Error).message}`, this.#file, error);
    }
  }
}

async function read(file: string): Promise<Times> {
  try {
    const times = JSON.parse(await readFile(file, "utf8")) as Times;
    return Object.assign(Object.create(null) as Times, times);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw cannot(`be read: ${(error as Error).message}`, file, error);
  }
}

const cannot = (what: string, file: string, cause: unknown) =>
  new EngineError("project", `${file} cannot ${what}`, { cause });
