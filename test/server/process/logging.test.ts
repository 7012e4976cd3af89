import { connect } from "node:net";
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

/** Logs one object, and returns the parsed line and its text. */
function lineOf(facts: object) {
  const { app, text } = logged();
  app.log.error(facts, "a failure");
  return { line: JSON.parse(text()), text: text() };
}

test.each([
  "password",
  "passwordHash",
  "current_password",
  "token",
  "secret",
  "mfaSecret",
  "recovery_code",
  "recovery_codes",
  "main_email_code",
  "recovery_email_code",
  "privateKey",
  "private_key",
  "pem",
])("a field %s never appears", (name) => {
  const secret = { [name]: "secret-of-field" };
  expect(lineOf({ ...secret, user: secret, request: { user: secret } }).text).not.toContain("secret-of-");
});

test.each(["headers", "body", "query", "params", "cookies"])(
  "%s never appear, whatever fields they contain",
  (name) => {
    const content = { [name]: { code: "secret-of-code", any: { other: ["secret-of-list"] } } };
    expect(lineOf({ ...content, request: content }).text).not.toContain("secret-of-");
  },
);

test("an error shows its codes and those of its causes, without any other field", () => {
  const row = "Failing row contains (ann, secret-of-row)";
  // The shape of Prisma's error about a statement that PostgreSQL has rejected.
  const error = Object.assign(new Error("the statement failed"), {
    code: "P2010",
    clientVersion: "7",
    meta: {
      driverAdapterError: Object.assign(new Error("rejected"), {
        cause: { kind: "postgres", originalCode: "57P01", originalMessage: row, detail: row },
      }),
    },
  });
  const { line, text } = lineOf({ err: new Error("cannot write", { cause: error }) });
  const adapter = { cause: { kind: "postgres", originalCode: "57P01" } };
  expect(line.err).toMatchObject({
    type: "Error",
    message: "cannot write: the statement failed",
    stack: expect.stringContaining("caused by: Error: the statement failed"),
    cause: { code: "P2010", meta: { driverAdapterError: adapter } },
  });
  expect(text).not.toContain("secret-of-");
});

test("an error of a connection shows the system's code, the address, and the errors of all addresses", async () => {
  const error = await new Promise((resolve) => {
    const socket = connect({ port: 1, host: "127.0.0.1" });
    socket.on("error", resolve);
  });
  const refused = { code: "ECONNREFUSED", syscall: "connect", address: "127.0.0.1", port: 1 };
  expect(lineOf({ err: error }).line.err).toMatchObject(refused);
  const all = new AggregateError([error, "no error"], "no address responds");
  expect(lineOf({ err: all }).line.err).toMatchObject({ aggregateErrors: [refused, {}] });
});

test("a password in a database URL does not appear, neither in the message nor in fields of the error", () => {
  const url = "postgresql://gate:secret-of-database@db:port/gate";
  const invalid = (() => {
    try {
      return new URL(url);
    } catch (error) {
      return error as Error;
    }
  })();
  // Node's error contains the URL.
  expect(invalid).toMatchObject({ input: url });
  const { line, text } = lineOf({ err: new Error(`cannot connect to ${url}`, { cause: invalid }) });
  expect(line.err).toMatchObject({ message: expect.stringContaining("postgresql://[redacted]@db") });
  expect(line.err).toMatchObject({ cause: { code: "ERR_INVALID_URL" } });
  expect(text).not.toContain("secret-of-");
});

test.each([
  ["postgresql://gate:secret-of-a@secret-of-b:c@db/gate", "postgresql://[redacted]@db/gate"],
  ["https://secret-of-token@host/a@b", "https://[redacted]@host/a@b"],
  ["smtp://:secret-of-mail@host", "smtp://[redacted]@host"],
  ["postgresql://db/gate?user=a&password=secret-of-query", "postgresql://db/gate?user=a&password=[redacted]"],
  ["postgresql://db/gate?sslpassword=secret-of-key&a=1", "postgresql://db/gate?sslpassword=[redacted]&a=1"],
  ["https://host/a?b=c and ann@example.org", "https://host/a?b=c and ann@example.org"],
])("an error about %s shows %s", (url, shown) => {
  const { line, text } = lineOf({ err: new Error(`cannot connect to ${url} now`) });
  expect(line.err.message).toBe(`cannot connect to ${shown} now`);
  expect(text).not.toContain("secret-of-");
});

test("codes outside of bodies appear: exit codes, codes of WebSockets", () => {
  expect(lineOf({ code: 1001 }).line).toMatchObject({ code: 1001 });
  expect(lineOf({ end: { code: null, signal: "SIGKILL" } }).line.end).toEqual({
    code: null,
    signal: "SIGKILL",
  });
});

test("a caught text appears, and fields of another caught value do not", () => {
  expect(lineOf({ err: "no error" }).line.err).toMatchObject({ message: "no error" });
  expect(lineOf({ err: { detail: "secret-of-value" } }).text).not.toContain("secret-of-");
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
