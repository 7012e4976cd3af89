import type { FastifyInstance } from "fastify";

interface ServedPath {
  readonly segments: readonly string[];
  readonly methods: Set<string>;
}

/**
 * Answers what no route serves: 405 with `Allow` when the path has other methods (RFC 9110, section 15.5.6),
 * else 404. Which methods a path has is no secret: the OpenAPI document says it. As in that document, a path
 * that is written out comes before one with a parameter in its place. Must come before the routes.
 * @param withheld paths that other editions serve: they are not found here, also where a parameter would take them in
 */
export function answerUnservedPaths(app: FastifyInstance, withheld: readonly string[]): void {
  const served = new Map<string, ServedPath>(
    withheld.map((url) => [url, { segments: url.split("/"), methods: new Set() }]),
  );
  const shadowed = new Set<string>();
  app.addHook("onRoute", ({ url, method }) => {
    if (url.includes("*")) return;
    const path = served.get(url) ?? { segments: url.split("/"), methods: new Set() };
    for (const name of [method].flat()) path.methods.add(name);
    for (const [other, { segments }] of served) {
      if (matches(path.segments, segments)) shadowed.add(url);
      if (matches(segments, path.segments)) shadowed.add(other);
    }
    served.set(url, path);
  });
  // A hook, because Fastify looks at content type and body before it calls a handler for paths not found.
  app.addHook("onRequest", async (request, reply) => {
    if (!request.is404 && !shadowed.has(request.routeOptions.url ?? "")) return;
    const methods = methodsOf([...served.values()], request.url.split("?", 1)[0] ?? "");
    if (methods.has(request.method)) return;
    if (methods.size === 0) return reply.code(404).send({ message: "no such path" });
    const allowed = [...methods].sort().join(", ");
    return reply
      .code(405)
      .header("Allow", allowed)
      .send({ message: `method: must be one of ${allowed}` });
  });
}

/** Methods of the path that is meant: of those that match, the one with the first written-out segment. */
function methodsOf(served: readonly ServedPath[], path: string): ReadonlySet<string> {
  const [meant] = served
    .filter(({ segments }) => matches(segments, path.split("/")))
    .sort((one, other) => rank(one.segments).localeCompare(rank(other.segments)));
  return meant?.methods ?? new Set();
}

const isParameter = (segment: string) => segment.startsWith(":");
const rank = (segments: readonly string[]) =>
  segments.map((text) => (isParameter(text) ? "1" : "0")).join("");

/** A parameter stands for any value that is not empty. */
function matches(route: readonly string[], path: readonly string[]): boolean {
  return (
    route !== path &&
    route.length === path.length &&
    route.every((text, index) => (isParameter(text) ? path[index] !== "" : text === path[index]))
  );
}
