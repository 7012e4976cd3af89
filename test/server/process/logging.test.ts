import { Writable } from "node:stream";
import Fastify from "fastify";
import { expect, test } from "vitest";
import { loggedUrl, loggerOptions } from "../../../server/process/logging.ts";

/** Creates an application that logs like the service. Also returns a function that reads the log. */
function logged() {
  let text = "";
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  return { app: Fastify({ logger: { ...loggerOptions("info"), stream } }), text: () => text };
}

test("a request's log contains neither credentials nor secret query parameters", async () => {
  const { app, text } = logged();
  app.get("/setup", async (request) => {
    request.log.info(
      { headers: request.headers, body: { password: "secret-of-body", user: { token: "secret-of-user" } } },
      "seen",
    );
    return {};
  });
  await app.inject({
    url: "/setup?sign=secret-of-sign&page=2&token=secret-of-query&x=y&status=accepted",
    headers: {
      authorization: "Bearer secret-of-bearer",
      "x-api-key": "secret-of-api-key",
      cookie: "session=secret-of-cookie",
    },
  });
  expect(text()).toContain("/setup?sign=[redacted]&page=2&token=[redacted]&x=[redacted]&status=accepted");
  expect(text()).toContain('"msg":"seen"');
  // The log also contains the host name of the machine, which can contain a short text by chance.
  expect(text()).not.toContain("secret-of-");
});

test.each([
  ["/a", "/a"],
  ["/a?", "/a?"],
  ["/a?0ca3f8dc", "/a?[redacted]"],
  ["/a?sign=1?page=2", "/a?sign=[redacted]"],
  ["/a?page=2&per_page=3", "/a?page=2&per_page=3"],
  ["/a?PAGE=1&%73ign=2", "/a?PAGE=[redacted]&%73ign=[redacted]"],
])("%s is logged as %s", (url, shown) => {
  expect(loggedUrl(url)).toBe(shown);
});
