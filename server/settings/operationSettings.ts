import { z } from "zod";
import { setting } from "./setting.ts";
import { listenAddress, wholeNumber } from "./values.ts";

/** Settings of metrics, log and shutdown. */
export const operationSettings = {
  metricsAddress: setting({
    variable: "GATEHOUSE_METRICS_ADDRESS",
    flag: "--metrics-address",
    value: "host:port",
    about: "Address to serve /metrics for Prometheus on, apart from everything else; left out: not served",
    allowed: "host:port, the port from 0 (any free one) to 65535",
    schema: listenAddress.optional(),
  }),
  metricsTokenFile: setting({
    variable: "GATEHOUSE_METRICS_TOKEN_FILE",
    flag: "--metrics-token-file",
    value: "file",
    about: "File with the bearer token that Prometheus must send; left out: none is asked for",
    allowed: "the path of a file that not everybody may read, with 16 characters or more",
    schema: z.string().min(1).optional(),
  }),
  logLevel: setting({
    variable: "GATEHOUSE_LOG_LEVEL",
    flag: "--log-level",
    value: "level",
    about: "Least important messages to log: fatal, error, warn, info, debug, trace or silent",
    allowed: "fatal, error, warn, info, debug, trace or silent",
    fallback: "info",
    schema: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]),
  }),
  drain: setting({
    variable: "GATEHOUSE_DRAIN",
    flag: "--drain",
    value: "seconds",
    about:
      "How long open SSH sessions and web terminals may go on when the service is stopped, in seconds; no new ones " +
      "begin meanwhile, and a second signal ends them at once",
    allowed: "a whole number of seconds from 0 to 86400",
    fallback: "0",
    schema: wholeNumber.refine((seconds) => seconds >= 0 && seconds <= 86_400),
  }),
  shutdownTimeout: setting({
    variable: "GATEHOUSE_SHUTDOWN_TIMEOUT",
    flag: "--shutdown-timeout",
    value: "seconds",
    about: "How long requests in flight may take to end when the service is stopped, in seconds",
    allowed: "a whole number of seconds from 1 to 3600",
    fallback: "10",
    schema: wholeNumber.refine((seconds) => seconds >= 1 && seconds <= 3600),
  }),
};
