import type { FastifyServerOptions } from "fastify";

function unused(): never {
  throw new Error("a route has a JSON schema without a compiler of its own");
}

/**
 * Keeps Fastify from loading its compilers of JSON schemas, which takes a tenth of the start. Nobody needs them:
 * requests are checked by the contract, and operations bring what writes their responses.
 */
export const schemaController: FastifyServerOptions["schemaController"] = {
  compilersFactory: { buildValidator: unused, buildSerializer: unused },
};
