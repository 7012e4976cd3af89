import type { Pattern } from "./pattern.ts";

type Named = readonly [name: string, place: number];

/** Devices by their names, of which many patterns say how they begin. */
export class NamedDevices {
  /** In the order given, in which they lie in memory: going through all of them is ten times faster than sorted. */
  readonly #devices: readonly Named[];
  /** By the code units of the names, so that those that begin alike are neighbours. */
  readonly #sorted: readonly Named[];

  constructor(devices: readonly Named[]) {
    this.#devices = devices;
    this.#sorted = devices.toSorted(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0));
  }

  /** Places of the devices in whose name the pattern is found. */
  *matching({ begins, test }: Pattern): Generator<number> {
    if (!begins || begins.includes("")) {
      for (const [name, place] of this.#devices) if (test(name)) yield place;
      return;
    }
    for (const begin of begins) {
      for (let index = this.#firstFrom(begin); index < this.#sorted.length; index += 1) {
        const [name, place] = this.#sorted[index] as Named;
        if (!name.startsWith(begin)) break;
        if (test(name)) yield place;
      }
    }
  }

  /** Where the first name is that does not come before the text. */
  #firstFrom(text: string): number {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle]?.[0] ?? "") < text) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
