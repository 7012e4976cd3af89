import type { Client } from "@gatehouse-access/sdk";
import type { z } from "zod";
import type { Connection, TenantClient } from "../service/connection.ts";
import type { ListingSource } from "../service/listings.ts";
import type { Values } from "../values.ts";
import { type Existing, type Listed, listed, liveFacts, type Origin } from "./definition.ts";
import type { Inputs, InputValues, Outputs, State } from "./fields.ts";
import type { IdForm } from "./idForm.ts";
import { canonicalInputs, declares, idWithin } from "./values.ts";

/** The values of inputs in a request. Each input of a stored object is required or has a default. */
type Sent<I extends Inputs> = { -readonly [K in Exclude<keyof I, "tenant">]: z.output<I[K]["schema"]> };

/**
 * The values of a state that are the same in the service's response: they have the same name and need no conversion.
 */
type Returned<W, S> = { [K in keyof S & keyof W as W[K] extends S[K] ? K : never]: S[K] };

/** The other values of a state. The module of the kind derives them from an object of the service. */
type Derived<W, S> = Omit<S, keyof Returned<W, S> | "tenant">;

/** The namespace of an object. */
export interface Place {
  readonly connection: Connection;
  readonly tenant: string;
}

type Awaitable<T> = T | Promise<T>;

/** A kind of object that the service stores and lists, and that one request can create, update or delete. */
export interface StoredKind<I extends Inputs, O extends Outputs, W extends object> {
  readonly name: string;
  readonly id: Pick<IdForm<"tenant">, "split" | "text" | "example">;
  readonly inputs: I;
  readonly outputs: O;
  /**
   * The source of the listing, which contains the objects of a namespace. The lookup keys of each object must include
   * the result of {@link keyOf}.
   */
  readonly source: ListingSource<W>;
  /**
   * Returns all objects of a namespace.
   * @default returns the objects in the listing
   */
  all?(connection: Connection, tenant: string): Promise<readonly W[]>;
  /** Returns the key of an object in its namespace: the last part of its id. */
  keyOf(object: W): string;
  /** Returns the display name of an object. */
  nameOf(object: W): string;
  /**
   * Returns the values of a state that the service does not return in the same form.
   * @param known the values in the program or in the previous state
   */
  derived(object: W, known: Readonly<Partial<State<I, O>>>, place: Place): Awaitable<Derived<W, State<I, O>>>;
  /**
   * Returns the request body of a create or an update.
   * @param plain the inputs under their own names. For an update, `plain` omits each input that requires a replacement
   *   when it changes
   * @param state the state before an update; undefined for a create
   * @default returns `plain`
   */
  body?(plain: Sent<I>, state: Readonly<State<I, O>> | undefined, place: Place): Awaitable<Values>;
  /**
   * Returns the lookup key of the existing object that conflicts with these inputs.
   * @default without this function, `find` searches the list for an object that equals the inputs
   */
  lookupKey?(inputs: InputValues<I>): string;
  /**
   * Returns the lookup keys with which an import searches for an object.
   * @param part the last part of the imported id
   * @default returns only the part itself
   */
  importKeys?(part: string): readonly string[];
  /** Sends a create. */
  create(client: Client, body: Sent<I>, options: Pick<Origin, "idempotencyKey">): Promise<W>;
  /** Sends an update. Omitted if every change replaces the object. */
  update?(client: Client, key: string, body: Sent<I>): Promise<W>;
  /** Sends a deletion. */
  remove(client: Client, key: string): Promise<unknown>;
}

/**
 * Returns the functions of a resource whose objects the service stores and lists, and that one request can create,
 * update or delete.
 */
export function stored<I extends Inputs, O extends Outputs, W extends object>(kind: StoredKind<I, O, W>) {
  type S = State<I, O>;
  const { name, id: ids, inputs, outputs } = kind;
  const names = Object.keys({ ...inputs, ...outputs });
  const sentNames = Object.keys(inputs).filter((input) => input !== "tenant" && !inputs[input]?.isLocal);
  const changeable = sentNames.filter((input) => !inputs[input]?.replaces);

  const existing = async (
    place: Place,
    object: W,
    known = {} as Readonly<Partial<S>>,
  ): Promise<Existing<S>> => ({
    id: `${place.tenant}/${kind.keyOf(object)}`,
    state: {
      tenant: place.tenant,
      ...valuesOf(object, names),
      ...(await kind.derived(object, known, place)),
    } as unknown as S,
    live: liveFacts(object),
  });

  /**
   * Sends a create or an update. The service rejects a filter with tags that do not exist. The request may therefore
   * wait until other resources of the run have added the tags.
   */
  async function send(
    connection: Connection,
    opened: TenantClient,
    values: InputValues<I>,
    state: Readonly<S> | undefined,
    request: (body: Sent<I>) => Promise<W>,
  ): Promise<Existing<S>> {
    const place = { connection, tenant: opened.tenant };
    const plain = valuesOf(canonicalInputs(inputs, values), state ? changeable : sentNames) as Sent<I>;
    const body = ((await kind.body?.(plain, state, place)) ?? plain) as Sent<I>;
    const { filter } = values as { readonly filter?: { readonly tags?: readonly string[] } };
    const object = await opened.tagWork.needing(filter?.tags, name, () => request(body));
    opened.listing(kind.source).put(object);
    return existing(place, object, { ...state, ...values } as Partial<S>);
  }

  return {
    name,
    id: ids,
    inputs,
    outputs,

    async find(connection: Connection, values: InputValues<I>, isOthers?: (id: string) => boolean) {
      const { tenant: wanted } = values as { readonly tenant?: string };
      const opened = await connection.tenant(wanted);
      const place = { connection, tenant: opened.tenant };
      const listing = opened.listing(kind.source);
      if (kind.lookupKey) {
        const found = await listing.find(kind.lookupKey(values));
        return found && existing(place, found);
      }
      const objects = await Promise.all((await listing.all()).map((object) => existing(place, object)));
      return objects.find(({ id, state }) => !isOthers?.(id) && declares(inputs, state, values));
    },

    async list(connection: Connection, tenant: string): Promise<Listed<S>[]> {
      const { all = async () => (await connection.tenant(tenant)).listing(kind.source).all() } = kind;
      const objects = (await all(connection, tenant)).map(async (object) => {
        const { id, state, live } = await existing({ connection, tenant }, object);
        return listed(id, kind.nameOf(object), state, { declaredBy: live?.declaredBy });
      });
      return Promise.all(objects);
    },

    async create(connection: Connection, values: InputValues<I>, { idempotencyKey }: Origin) {
      const { tenant: wanted } = values as { readonly tenant?: string };
      const opened = await connection.tenant(wanted);
      return send(connection, opened, values, undefined, (body) =>
        kind.create(opened.client, body, { idempotencyKey }),
      );
    },

    async read(connection: Connection, id: string, state: Readonly<Partial<S>>) {
      const { tenant } = ids.split(id);
      const listing = (await connection.tenant(tenant)).listing(kind.source);
      const part = idWithin({ id });
      // A state without any output comes from an import.
      const isImport = Object.keys(outputs).every((output) => state[output] === undefined);
      for (const key of (isImport && kind.importKeys?.(part)) || [part]) {
        const found = await listing.find(key);
        if (found) return existing({ connection, tenant }, found, state);
      }
      return undefined;
    },

    async update(connection: Connection, id: string, state: Readonly<S>, values: InputValues<I>) {
      const { update } = kind;
      if (!update || declares(inputs, state, values)) return state;
      const opened = await connection.tenant(ids.split(id).tenant);
      const former = kind.lookupKey?.(state);
      const changed = await send(connection, opened, values, state, (body) =>
        update(opened.client, idWithin({ id }), body),
      );
      // A later read with the former name must not return the renamed object.
      if (former !== kind.lookupKey?.(values)) opened.listing(kind.source).forget();
      return changed.state;
    },

    async delete(connection: Connection, id: string) {
      const opened = await connection.tenant(ids.split(id).tenant);
      const key = idWithin({ id });
      await opened
        .listing(kind.source)
        .remove(key, opened.client, (witnessed) => kind.remove(witnessed, key));
    },
  };
}

/** Returns the properties of an object whose names are in `names`. */
export const valuesOf = (object: object, names: readonly string[]): Values =>
  Object.fromEntries(Object.entries(object).filter(([name]) => names.includes(name)));
