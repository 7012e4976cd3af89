import { describe, expect, test } from "vitest";
import { AuthenticationError, GatehouseError, maskSecrets, printedError } from "../../sdk/errors.ts";
import { tokenCredential } from "../../sdk/index.ts";
import { REQUEST_SENTENCES } from "../../sdk/requestSentences.ts";
import { connect, failure } from "./scriptedClient.ts";
import { scriptedServer } from "./scriptedServer.ts";

const login = {
  operation: "login",
  method: "POST",
  path: "/api/login",
  outcome: "none",
  attempts: 1,
} as const;

describe("a mask", () => {
  test("keeps this project's own sentences even if a secret equals one of their words", () => {
    const error = printedError(
      new AuthenticationError("wrong user name or password at https://h (401)", login),
    );
    for (const secret of ["wrong", "password", "user name", "or"])
      expect(maskSecrets(error, [secret])).toBe(error);
  });

  test("keeps every sentence of request errors, even if any of its words is a secret", () => {
    for (const sentence of REQUEST_SENTENCES) {
      for (const word of sentence.split(/\W+/)) expect(maskSecrets(sentence, [word])).toBe(sentence);
    }
  });

  test.each([
    ["wrong is the password", ["wrong"], "[secret] is the password"],
    [
      "user wrong: wrong user name or password at https://h (401)",
      ["wrong"],
      "user [secret]: wrong user name or password at https://h (401)",
    ],
    ["wrongwrong user name or password at", ["wrong"], "[secret]wrong user name or password at"],
    ["xwrong user name or password atx", ["xwrong"], "[secret] user name or password atx"],
    // "wrong code" is one of this project's own sentences. The text is still masked if the whole sentence is equal to a
    // secret.
    ['the password "wrong code" is too simple', ["wrong code"], 'the password "[secret]" is too simple'],
    ["hunter2-prod is like hunter2", ["hunter2", "hunter2-prod"], "[secret] is like [secret]"],
    ["abcde", ["abc", "cde"], "[secret]"],
    ["aaaa", ["aa"], "[secret]"],
    ["nothing here", ["", "x"], "nothing here"],
  ])("hides secrets in text from outside: %s", (text, secrets, shown) => {
    expect(maskSecrets(text, secrets)).toBe(shown);
  });

  test("keeps additional sentences that the caller passes, but not parts of other texts", () => {
    expect(maskSecrets("web-01 has no such key, key", ["key"], ["has no such key"])).toBe(
      "web-01 has no such key, [secret]",
    );
  });
});

test("the client masks its secrets only in texts that come from the service", async () => {
  const server = await scriptedServer();
  const client = connect(server.url, { credential: tokenCredential("header.payload.signature") });
  server.script({ status: 400, body: { message: "invalid: the request of invalid" } });
  const error = await failure(client.updateUser({ body: { password: "invalid" } }), GatehouseError);
  expect(error.message).toMatch(
    /^The server rejected the request as invalid \(400\): \[secret\]: the request of \[secret\]\. \[/,
  );
});

test("an error message does not repeat a service's text that equals the cause", async () => {
  const server = await scriptedServer();
  server.script({ status: 401, body: { message: "Wrong user name or password." } });
  const body = { username: "ann", password: "wrong" };
  const error = await failure(connect(server.url).login({ body }), AuthenticationError);
  expect(error.message).toBe(`Wrong user name or password at ${server.url} (401). [login (POST /api/login)]`);
  expect(error.serverMessage).toBe("Wrong user name or password.");
});
