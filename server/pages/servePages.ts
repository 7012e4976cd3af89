import type { Operation } from "@gatehouse-access/sdk/contract";
import type { FastifyInstance } from "fastify";
import "../http/declaredAccess.ts";
import { makePage, type Page } from "./page.ts";
import { linkedPages } from "./sources.ts";

/**
 * Serves the pages that the service's own links lead to, for the operations that it serves: a page whose operations
 * are another edition's is not there. They are the same for everybody, and to read one changes nothing: programs that
 * look into mails open every link. What a link is for happens when a person presses the button.
 */
export function servePages(app: FastifyInstance, operations: readonly Operation[]): void {
  for (const source of linkedPages(new Set(operations))) {
    // Made when it is first asked for, as few are in the life of an instance.
    let page: Page | undefined;
    app.get(
      source.path,
      {
        exposeHeadRoute: true,
        config: { publicBecause: "a page without data; what it asks for is guarded" },
      },
      async (_request, reply) => {
        page ??= makePage(source);
        return reply
          .header("Content-Security-Policy", page.policy)
          .type("text/html; charset=utf-8")
          .send(page.html);
      },
    );
  }
}
