import { expect, test } from "vitest";
import { RunLog } from "../../provider/engine/runLog.ts";
import { secret } from "../../provider/engine/value.ts";

test("a mask hides secrets in the output of programs and providers, but keeps the texts of request errors", () => {
  const log = new RunLog(() => {});
  log.hide({ password: secret("wrong"), short: secret("user") });
  log.diagnostic({
    severity: "error",
    message: "the program read wrong: wrong user name or password at the service (401)",
  });
  expect(log.diagnostics[0]?.message).toBe(
    "the program read [secret]: wrong user name or password at the service (401)",
  );
});
