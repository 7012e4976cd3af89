import type { KeptFile } from "./KeptFile.ts";

/** By name, when a run found it first: RFC 3339 in UTC. */
export type SeenTimes = Readonly<Record<string, string>>;

/**
 * When runs first found things, for services that keep no trail: in a file, which holds what the latest run found. Nothing
 * is read or written before somebody asks.
 */
export class FirstSeen {
  readonly #file: KeptFile<SeenTimes>;
  readonly #now: Date;
  readonly #found = new Map<string, string>();
  #before: Promise<ReadonlyMap<string, string | undefined>> | undefined;

  constructor(file: KeptFile<SeenTimes>, now = new Date()) {
    this.#file = file;
    this.#now = now;
  }

  /**
   * By name, when a run found it first: RFC 3339 in UTC.
   * @param names what this run found
   * @throws EngineError (`project`) where the file cannot be read or understood
   */
  async of(names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    this.#before ??= this.#file.read().then((times = {}) => new Map(Object.entries(times)));
    const before = await this.#before;
    for (const name of names) this.#found.set(name, before.get(name) ?? this.#now.toISOString());
    return this.#found;
  }

  /** Keeps it for later runs. @throws EngineError (`project`) where the file cannot be written */
  async save(): Promise<void> {
    if (this.#before) await this.#file.write(Object.fromEntries([...this.#found].sort()));
  }
}
