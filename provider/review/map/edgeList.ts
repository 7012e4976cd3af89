import type { Finding } from "./compare.ts";
import type { MapEdge } from "./data.ts";

interface Part {
  readonly finding: Finding;
  readonly devices: number;
  readonly logins: string[];
  readonly addresses: string[];
}

/** Collects what was found into few edges: what differs in login or address alone is one edge. */
export class EdgeList {
  readonly edges: MapEdge[] = [];
  readonly deviceSets: number[][] = [];
  readonly texts: string[] = [];
  /** Index on the map of each place in the list of uids. */
  readonly #indexes: readonly number[];
  readonly #setPlaces = new Map<string, number>();
  readonly #textPlaces = new Map<string, number>();
  readonly #parts = new Map<string, Part>();

  constructor(indexes: readonly number[]) {
    this.#indexes = indexes;
  }

  /** Adds what was found for the key whose turn it is. */
  add(finding: Finding, login: string, address: string): void {
    if (finding.places.length === 0) return;
    const devices = this.#set(finding.places);
    const name = partName({ finding, devices }, [login]);
    const part = this.#parts.get(name);
    if (part) part.addresses.push(address);
    else this.#parts.set(name, { finding, devices, logins: [login], addresses: [address] });
  }

  /** Ends a key's turn: its edges are made. */
  endKey(key: number): void {
    const merged = Map.groupBy(this.#parts.values(), (part) => partName(part, part.addresses));
    for (const parts of merged.values()) {
      const [first] = parts;
      if (!first) continue;
      const { finding, devices, addresses } = first;
      const cause = finding.cause === undefined ? {} : { cause: this.#text(finding.cause) };
      this.edges.push({
        key,
        devices,
        logins: parts.flatMap(({ logins }) => logins),
        addresses,
        change: finding.change,
        rule: this.#text(finding.rule),
        ...cause,
      });
    }
    this.#parts.clear();
  }

  #text(text: string): number {
    return interned(this.#textPlaces, this.texts, text, text);
  }

  #set(places: readonly number[]): number {
    const runs: number[] = [];
    for (const index of places.map((place) => this.#indexes[place] ?? -1).sort((a, b) => a - b)) {
      if (runs.at(-1) === index - 1) runs[runs.length - 1] = index;
      else runs.push(index, index);
    }
    return interned(this.#setPlaces, this.deviceSets, runs.join(), runs);
  }
}

const partName = ({ finding, devices }: Pick<Part, "finding" | "devices">, more: readonly string[]): string =>
  JSON.stringify([finding.change, finding.rule, finding.cause, devices, more]);

function interned<T>(places: Map<string, number>, all: T[], name: string, value: T): number {
  const known = places.get(name);
  if (known !== undefined) return known;
  places.set(name, all.length);
  return all.push(value) - 1;
}
