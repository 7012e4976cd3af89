import "../access/authorize.ts";
import "../access/declaredAccess.ts";
import type { Operation } from "@gatehouse-access/sdk/contract";
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest, RouteOptions } from "fastify";
import { BusyError } from "../../errors.ts";
import type { Services } from "../../services.ts";
import { ownerOf } from "../access/identity.ts";
import { isList } from "../contract/validation.ts";
import { ListTurns } from "./ListTurns.ts";

/**
 * Time without a refused list of an owner, in milliseconds. After this time, the log reports that the owner's lists are
 * accepted again.
 */
const CALM = 10_000;

/**
 * Schedules lists by owner (see {@link ListTurns}). The owner is the namespace of the credential, or the user if the
 * credential has no namespace. If an owner has too many waiting lists, the response is 503 with `Retry-After`. Public
 * lists are exempt, because they have no owner. Call this function before adding the routes of the lists.
 */
export function limitLists(app: FastifyInstance, { settings, metrics }: Services): void {
  const turns = new ListTurns(settings.listBacklog);
  const refusals = new Refusals(app.log);
  const ends = new WeakMap<FastifyRequest, () => void>();

  const hooks: Pick<RouteOptions, "onRequest" | "onSend"> = {
    onRequest(request, _reply, done) {
      const owner = ownerOfRequest(request);
      const begins = turns.begin(owner, (end) => {
        // Do not build the list if the client disconnected while the list was waiting.
        if (request.socket.destroyed) return;
        ends.set(request, end);
        done();
      });
      if (begins) return;
      metrics.refusedLists.inc();
      refusals.add(owner);
      done(new BusyError("too many list requests are waiting; try again", { "Retry-After": "1" }));
    },
    onSend(request, _reply, payload, done) {
      ends.get(request)?.();
      done(null, payload);
    },
  };
  app.addHook("onRoute", (route) => {
    const operation = route.config?.operation;
    if (operation && hasOwner(operation) && isList(operation)) Object.assign(route, hooks);
  });
}

const hasOwner = ({ scope }: Operation): boolean => scope !== "public";

/** Returns the owner of a request for a list. */
function ownerOfRequest({ identity }: FastifyRequest): string {
  if (identity === null) throw new Error("the list has no owner");
  return ownerOf(identity);
}

/** Logs the start and the end of a period of refused lists, once for each owner. */
class Refusals {
  readonly #log: FastifyBaseLogger;
  readonly #ongoing = new Map<string, { count: number; readonly calm: NodeJS.Timeout }>();

  constructor(log: FastifyBaseLogger) {
    this.#log = log;
  }

  add(owner: string): void {
    const known = this.#ongoing.get(owner);
    if (known !== undefined) {
      known.count += 1;
      known.calm.refresh();
      return;
    }
    this.#log.warn({ owner }, "refusing lists: too many list requests of the same owner are waiting");
    const calm = setTimeout(() => {
      this.#log.info({ owner, refused: this.#ongoing.get(owner)?.count }, "accepting lists again");
      this.#ongoing.delete(owner);
    }, CALM).unref();
    this.#ongoing.set(owner, { count: 1, calm });
  }
}
