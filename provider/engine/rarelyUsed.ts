/** Modules that the SDK loads at its start and most runs never use, as one file below its folder would name them. */
export const RARELY_USED = [
  "../../typescript-shim.js",
  "../../automation/index.js",
  "@npmcli/arborist",
] as const;

/** The same of which it takes single exports at once, all of them functions, classes or objects. */
export const TAKEN_APART = [
  "@opentelemetry/exporter-zipkin",
  "@opentelemetry/instrumentation",
  "@opentelemetry/instrumentation-grpc",
  "@opentelemetry/resources",
  "@opentelemetry/sdk-trace-base",
  "@opentelemetry/sdk-trace-node",
] as const;
