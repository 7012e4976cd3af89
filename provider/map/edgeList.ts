import type { ComparedDevices } from "./accessComparison.ts";
import type { MapEdge } from "./data.ts";

interface Part {
  readonly compared: ComparedDevices;
  readonly devices: number;
  readonly logins: string[];
  readonly addresses: string[];
}

/** Collects compared devices into few edges: those that differ in login name or address alone become one edge. */
export class EdgeList {
  readonly edges: MapEdge[] = [];
  readonly deviceSets: number[][] = [];
  readonly texts: string[] = [];
  /** The place on the map of each device in the list of uids. */
  readonly #indexes: readonly number[];
  readonly #setPlaces = new Map<string, number>();
  readonly #textPlaces = new Map<string, number>();
  readonly #parts = new Map<string, Part>();

  constructor(indexes: readonly number[]) {
    this.#indexes = indexes;
  }

  /** Adds devices of the key whose turn it is. */
  add(compared: ComparedDevices, login: string, address: string): void {
    if (compared.places.length === 0) return;
    const devices = this.#set(compared.places);
    const name = partName({ compared, devices }, [login]);
    const part = this.#parts.get(name);
    if (part) part.addresses.push(address);
    else this.#parts.set(name, { compared, devices, logins: [login], addresses: [address] });
  }

  /** Ends a key's turn: its edges are made. */
  endKey(key: number): void {
    const merged = Map.groupBy(this.#parts.values(), (part) => partName(part, part.addresses));
    for (const parts of merged.values()) {
      const [first] = parts;
      if (!first) continue;
      const { compared, devices, addresses } = first;
      const cause = compared.cause === undefined ? {} : { cause: this.#text(compared.cause) };
      this.edges.push({
        key,
        devices,
        logins: parts.flatMap(({ logins }) => logins),
        addresses,
        change: compared.change,
        rule: this.#text(compared.rule),
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

const partName = (
  { compared, devices }: Pick<Part, "compared" | "devices">,
  more: readonly string[],
): string => JSON.stringify([compared.change, compared.rule, compared.cause, devices, more]);

function interned<T>(places: Map<string, number>, all: T[], name: string, value: T): number {
  const known = places.get(name);
  if (known !== undefined) return known;
  places.set(name, all.length);
  return all.push(value) - 1;
}
