import type { FastifyInstance } from "fastify";

interface ServedPath {
  readonly segments: readonly string[];
  readonly methods: ReadonlySet<string>;
}

/**
 * Answers what no route serves: 405 with `Allow` when the path has other methods (RFC 9110, section 15.5.6),
 * else 404. Which methods a path has is no secret: the OpenAPI document says it. Must come before the routes.
 */
export function answerUnservedPaths(app: FastifyInstance): void {
  const served: ServedPath[] = [];
  app.addHook("onRoute", ({ url, method }) => {
    if (!url.includes("*")) served.push({ segments: url.split("/"), methods: new Set([method].flat()) });
  });
  app.setNotFoundHandler(async (request, reply) => {
    const allowed = methodsOf(served, request.url.split("?", 1)[0] ?? "");
    if (allowed.length === 0) return reply.code(404).send({ message: "no such path" });
    return reply
      .code(405)
      .header("Allow", allowed.join(", "))
      .send({ message: `method: must be one of ${allowed.join(", ")}` });
  });
}

function methodsOf(served: readonly ServedPath[], path: string): string[] {
  const segments = path.split("/");
  const matches = served.filter((route) => matchesPath(route.segments, segments));
  return [...new Set(matches.flatMap((route) => [...route.methods]))].sort();
}

/** Of a route's segments, those with a colon stand for any value that is not empty. */
function matchesPath(route: readonly string[], path: readonly string[]): boolean {
  return (
    route.length === path.length &&
    route.every((segment, index) => (segment.startsWith(":") ? path[index] !== "" : segment === path[index]))
  );
}
