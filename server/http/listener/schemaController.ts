import type { FastifyServerOptions } from "fastify";

function unused(): never {
  throw new Error("a route has a JSON schema without a compiler of its own");
}

/**
 * Keeps Fastify from loading its compilers of JSON schemas, which takes a tenth of the start. They are not needed: the
 * contract validates requests, and operations bring their own serializers.
 */
export const schemaController: FastifyServerOptions["schemaController"] = {
  compilersFactory: { buildValidator: unused, buildSerializer: unused },
};
