import type { z } from "zod";

/**
 * Size of a piece of a list, in characters or a similar measure. A piece is a group of items. One turn of the event
 * loop reads or serializes a piece of this size in a few milliseconds.
 */
export const PIECE_CHARACTERS = 128 * 1024;

/**
 * Runs each piece of a large list, and each write of a long text, in a separate turn of the event loop. Other requests
 * are therefore delayed by one piece at most. Each turn runs at most one piece. If pieces of several owners wait, the
 * owners take turns. An owner is a namespace or a user.
 */
export class PieceTurns {
  /** The waiting pieces of each owner. The owner whose turn is next comes first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #isAwaited = false;

  /** Waits for the turn of a piece. Run the piece directly after this function resolves. */
  wait(owner: string): Promise<void> {
    return new Promise((resolve) => {
      const own = this.#waiting.get(owner);
      if (own === undefined) this.#waiting.set(owner, [resolve]);
      else own.push(resolve);
      this.#awaitTurn();
    });
  }

  /** Returns true if a piece of the owner is waiting. */
  isWaiting(owner: string): boolean {
    return this.#waiting.has(owner);
  }

  #awaitTurn(): void {
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    setImmediate(() => {
      this.#isAwaited = false;
      const [[owner, own] = ["", []]] = this.#waiting;
      const begin = own.shift();
      // Move the owner to the end of the list.
      this.#waiting.delete(owner);
      if (own.length > 0) this.#waiting.set(owner, own);
      if (this.#waiting.size > 0) this.#awaitTurn();
      begin?.();
    });
  }
}

/** Schedules the pieces of all lists of this process. */
export const pieceTurns = new PieceTurns();

/** Divides items into groups. Each group has at most the given size, or contains a single item. */
function* groupsOf<T>(items: readonly T[], sizeOf: (item: T) => number, most: number): Generator<T[]> {
  let group: T[] = [];
  let size = 0;
  for (const item of items) {
    const added = sizeOf(item);
    if (group.length > 0 && size + added > most) {
      yield group;
      group = [];
      size = 0;
    }
    group.push(item);
    size += added;
  }
  if (group.length > 0) yield group;
}

/** The division of a list of items into groups. */
interface Division<T> {
  readonly owner: string;
  readonly sizeOf: (item: T) => number;
  /** Maximum size of a group with several items. @default {@link PIECE_CHARACTERS} */
  readonly most?: number;
}

/**
 * A list that is read and serialized in pieces, each in a separate turn of the event loop. Only the objects of one
 * piece are in memory at a time.
 */
export class ListInPieces<R> {
  readonly pieces: AsyncIterable<readonly R[]>;

  constructor(pieces: AsyncIterable<readonly R[]>) {
    this.pieces = pieces;
  }

  /** Returns the list with each item converted by a function. */
  map<T>(convert: (item: R) => T): ListInPieces<T> {
    const { pieces } = this;
    async function* converted(): AsyncGenerator<T[]> {
      for await (const piece of pieces) yield piece.map(convert);
    }
    return new ListInPieces(converted());
  }
}

/**
 * Returns the results of a function that is called for each group of items. If all items fit into one group, no other
 * turn of the event loop is necessary.
 * @param process returns the results for a group, in order
 */
export const inPieces = <T, R>(
  items: readonly T[],
  division: Division<T>,
  process: (group: readonly T[]) => Promise<readonly R[]>,
): ListInPieces<R> => new ListInPieces(piecesOf(items, division, process));

async function* piecesOf<T, R>(
  items: readonly T[],
  { owner, sizeOf, most = PIECE_CHARACTERS }: Division<T>,
  process: (group: readonly T[]) => Promise<readonly R[]>,
): AsyncGenerator<readonly R[]> {
  let isFirst = true;
  for (const group of groupsOf(items, sizeOf, most)) {
    if (!isFirst) await pieceTurns.wait(owner);
    const results = await process(group);
    // The serialization of a piece also takes a turn.
    if (!isFirst || group.length < items.length) await pieceTurns.wait(owner);
    isFirst = false;
    yield results;
  }
}

/** Returns all items of a list that is read in pieces. */
export async function itemsOf<R>({ pieces }: ListInPieces<R>): Promise<R[]> {
  const items: R[] = [];
  for await (const piece of pieces) for (const item of piece) items.push(item);
  return items;
}

/**
 * Serializes a list as JSON. A long list is serialized in pieces, each in a separate turn of the event loop.
 * @returns the JSON text; if it is long, its pieces in UTF-8
 */
export async function serializeInPieces(
  list: readonly unknown[] | ListInPieces<unknown>,
  owner: string,
  serialize: (item: unknown) => string,
): Promise<string | Buffer[]> {
  const written: Buffer[] = [];
  let text = "[";
  let separator = "";
  for await (const items of list instanceof ListInPieces ? list.pieces : [list]) {
    for (const item of items) {
      if (text.length >= PIECE_CHARACTERS) {
        written.push(Buffer.from(text));
        text = "";
        await pieceTurns.wait(owner);
      }
      text += `${separator}${serialize(item)}`;
      separator = ",";
    }
  }
  text += "]";
  return written.length === 0 ? text : [...written, Buffer.from(text)];
}

/** Returns the item schema of a list schema. Returns undefined if the schema is not for a list. */
export function itemSchema(schema: z.ZodType | undefined): z.ZodType | undefined {
  return schema?.def.type === "array" ? (schema as z.ZodArray<z.ZodType>).element : undefined;
}
