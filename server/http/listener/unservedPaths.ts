import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

interface ServedPath {
  readonly segments: readonly string[];
  readonly methods: Set<string>;
}

/**
 * Responds to requests that no route serves. The response is 405 with `Allow` if the path has other methods (RFC 9110,
 * section 15.5.6), otherwise 404. The methods of a path are not secret, because the OpenAPI document lists them. As in
 * the OpenAPI document, a literal path takes precedence over a path with a parameter. Call this function before adding
 * the routes.
 * @param absent paths that only other editions serve. They have no methods here, even if a path with a parameter
 *   matches them.
 * @param sendPage sends a page instead of the JSON of a 404 response, or returns undefined
 */
export function answerUnservedPaths(
  app: FastifyInstance,
  absent: readonly string[] = [],
  sendPage?: (request: FastifyRequest, reply: FastifyReply) => FastifyReply | undefined,
): void {
  const served = new Map<string, ServedPath>();
  const shadowed = new Set<string>();
  const add = (url: string, methods: readonly string[]) => {
    const path = served.get(url) ?? { segments: url.split("/"), methods: new Set() };
    for (const name of methods) path.methods.add(name);
    for (const [other, { segments }] of served) {
      if (matches(path.segments, segments)) shadowed.add(url);
      if (matches(segments, path.segments)) shadowed.add(other);
    }
    served.set(url, path);
  };
  for (const url of absent) add(url, []);
  app.addHook("onRoute", ({ url, method }) => {
    if (!url.includes("*")) add(url, [method].flat());
  });
  // Use a hook for the response, because Fastify checks content type and body before it calls a not-found handler.
  app.addHook("onRequest", async (request, reply) => {
    if (!request.is404 && !shadowed.has(request.routeOptions.url ?? "")) return;
    const methods = methodsOf([...served.values()], request.url.split("?", 1)[0] ?? "");
    if (methods.has(request.method)) return;
    if (methods.size === 0) {
      return sendPage?.(request, reply) ?? reply.code(404).send({ message: "no such path" });
    }
    const allowed = [...methods].sort().join(", ");
    return reply
      .code(405)
      .header("Allow", allowed)
      .send({ message: `method must be one of ${allowed}` });
  });
}

/** Returns the methods of the best matching path. The best match is the path with the earliest literal segment. */
function methodsOf(served: readonly ServedPath[], path: string): ReadonlySet<string> {
  const [best] = served
    .filter(({ segments }) => matches(segments, path.split("/")))
    .sort((one, other) => rank(one.segments).localeCompare(rank(other.segments)));
  return best?.methods ?? new Set();
}

const isParameter = (segment: string) => segment.startsWith(":");
const rank = (segments: readonly string[]) =>
  segments.map((text) => (isParameter(text) ? "1" : "0")).join("");

/** Returns true if a route matches a path. A parameter matches any value that is not empty. */
function matches(route: readonly string[], path: readonly string[]): boolean {
  return (
    route !== path &&
    route.length === path.length &&
    route.every((text, index) => (isParameter(text) ? path[index] !== "" : text === path[index]))
  );
}
