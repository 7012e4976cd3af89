// A proxy between the Pulumi CLI and the plugin, for recordings: see replay.test.ts. The CLI starts the proxy instead
// of the plugin, and the proxy starts the plugin. It forwards each call, and appends the call and its outcome to the
// file GATEHOUSE_RECORDER.
import { appendFileSync } from "node:fs";
import grpc from "@grpc/grpc-js";
import { failureOf, methods, toJson } from "../../support/pluginClient.ts";
import { startPlugin } from "./pluginProcess.ts";

const { GATEHOUSE_RECORDER: file = "", ...env } = process.env;
const { child, client } = await startPlugin(process.argv.slice(2), env);
child.once("exit", (code) => process.exit(code ?? 1));
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.once(signal, () => child.kill());

const forward =
  (method: string): grpc.handleUnaryCall<unknown, unknown> =>
  async ({ request }, done) => {
    const call = { process: process.pid, method, request: toJson(request) };
    const write = (outcome: object) => appendFileSync(file, `${JSON.stringify({ ...call, ...outcome })}\n`);
    try {
      const response = await client.pass(method, request);
      write({ response: toJson(response) });
      done(null, response);
    } catch (error) {
      write(failureOf(error));
      done(error as grpc.ServiceError);
    }
  };

const server = new grpc.Server({ "grpc.max_receive_message_length": -1 });
server.addService(
  methods as unknown as grpc.ServiceDefinition,
  Object.fromEntries(Object.keys(methods).map((method) => [method, forward(method)])),
);
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  process.stdout.write(`${port}\n`);
});
