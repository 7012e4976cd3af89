import { Counter, Gauge, Histogram, Registry } from "prom-client";

/**
 * Upper bounds of the request time histogram, in seconds. A read takes a few milliseconds, and a login takes about 50
 * milliseconds.
 */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** The service's metrics for Prometheus. Callers cannot choose the value of any label. */
export interface Metrics {
  readonly registry: Registry;
  /** Number of responses, by operation and status. */
  readonly requests: Counter<"operation" | "status">;
  /** Time until the response, in seconds, by operation. */
  readonly duration: Histogram<"operation">;
  /** Number of user login steps, by step (`password`, `mfa`, `saml`) and result. */
  readonly logins: Counter<"step" | "result">;
  /** Number of lockouts that began. */
  readonly lockouts: Counter;
  /** Number of device reports received. */
  readonly heartbeats: Counter;
  /** Number of logins to devices, by entry (`ssh`, `web`), credential (`key`, `password`, `none`) and result. */
  readonly deviceLogins: Counter<"entry" | "credential" | "result">;
  /** Time, in seconds, from the moment when the policy allowed a login until the device accepted the login. */
  readonly deviceLoginDuration: Histogram<"entry">;
  /** Number of SSH clients' key exchanges that ended before they were complete. */
  readonly refusedExchanges: Counter;
  /** Number of gaps in the records of sessions. */
  readonly recordingGaps: Counter;
  /** Number of bytes of output that are missing in recordings because of gaps. */
  readonly recordingLostBytes: Counter;
  /**
   * Number of tunnels that were refused because another tunnel was open and the agent did not prove the device's
   * private key.
   */
  readonly refusedTakeovers: Counter;
  /** Number of list requests that were refused because too many requests of the same owner were waiting. */
  readonly refusedLists: Counter;
  /** Number of recordings that this instance deleted, by reason. */
  readonly deletedRecordings: Counter<"reason">;
  /** Number of sessions that this instance deleted because their retention period had ended. */
  readonly deletedSessions: Counter;
  /**
   * Time, in seconds, by which the oldest recording or session exceeds its retention period, by kind. 0 if no recording
   * or session exceeds it.
   */
  readonly retentionBacklog: Gauge<"kind">;
  /** Size of all recordings in bytes. */
  readonly recordings: Gauge;
  /** Quota of all recordings, in bytes. 0 means no limit. */
  readonly recordingsMax: Gauge;
  /** Number of namespaces whose recordings have reached their quota. */
  readonly fullNamespaces: Gauge;
  /** Number of sessions that were refused because the recordings of their namespaces were full. */
  readonly refusedRecordings: Counter;
  /** Free space for the SQLite database, in bytes. 0 with PostgreSQL. */
  readonly freeSpace: Gauge;
}

/** Creates the metrics, with a separate registry. */
export function makeMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  return {
    registry,
    requests: new Counter({
      name: "gatehouse_requests_total",
      help: "Responses to requests, by operation and status",
      labelNames: ["operation", "status"],
      registers,
    }),
    duration: new Histogram({
      name: "gatehouse_request_duration_seconds",
      help: "Time to respond to a request, by operation",
      labelNames: ["operation"],
      buckets: BUCKETS,
      registers,
    }),
    logins: new Counter({
      name: "gatehouse_logins_total",
      help: "Steps of logins (password, mfa, saml) by result",
      labelNames: ["step", "result"],
      registers,
    }),
    lockouts: new Counter({
      name: "gatehouse_lockouts_total",
      help: "Lockouts that began after failed logins",
      registers,
    }),
    heartbeats: new Counter({
      name: "gatehouse_device_heartbeats_total",
      help: "Device reports received",
      registers,
    }),
    deviceLogins: new Counter({
      name: "gatehouse_device_logins_total",
      help: "Logins to devices by entry (ssh, web), credential (key, password, none) and result: accepted, or the reason of the refusal",
      labelNames: ["entry", "credential", "result"],
      registers,
    }),
    deviceLoginDuration: new Histogram({
      name: "gatehouse_device_login_duration_seconds",
      help: "Time from the policy's decision about a login until the device accepted it, by entry",
      labelNames: ["entry"],
      buckets: BUCKETS,
      registers,
    }),
    refusedExchanges: new Counter({
      name: "gatehouse_gateway_refused_key_exchanges_total",
      help: "Key exchanges of SSH clients that were refused or aborted",
      registers,
    }),
    recordingGaps: new Counter({
      name: "gatehouse_recording_gaps_total",
      help: "Gaps in the records of sessions, because the database could not be written for too long or the gateway process ended",
      registers,
    }),
    recordingLostBytes: new Counter({
      name: "gatehouse_recording_lost_bytes_total",
      help: "Bytes of sessions' output that are missing in recordings because of gaps",
      registers,
    }),
    refusedTakeovers: new Counter({
      name: "gatehouse_device_takeovers_refused_total",
      help: "Tunnels refused because the device has another tunnel and the agent did not prove the private key",
      registers,
    }),
    refusedLists: new Counter({
      name: "gatehouse_refused_lists_total",
      help: "List requests refused because too many list requests of the same namespace were waiting",
      registers,
    }),
    deletedRecordings: new Counter({
      name: "gatehouse_deleted_recordings_total",
      help: "Recordings that this instance deleted, by reason (retention, quota)",
      labelNames: ["reason"],
      registers,
    }),
    deletedSessions: new Counter({
      name: "gatehouse_deleted_sessions_total",
      help: "Sessions that this instance deleted after their retention",
      registers,
    }),
    retentionBacklog: new Gauge({
      name: "gatehouse_retention_backlog_seconds",
      help: "Time by which the oldest recording or session exceeds its retention, by kind (recording, session)",
      labelNames: ["kind"],
      registers,
    }),
    recordings: new Gauge({
      name: "gatehouse_recordings_bytes",
      help: "Size of all recordings",
      registers,
    }),
    recordingsMax: new Gauge({
      name: "gatehouse_recordings_max_bytes",
      help: "Quota of all recordings; 0 = no limit",
      registers,
    }),
    fullNamespaces: new Gauge({
      name: "gatehouse_recordings_full_namespaces",
      help: "Namespaces whose recordings have reached their quota",
      registers,
    }),
    refusedRecordings: new Counter({
      name: "gatehouse_recordings_refused_sessions_total",
      help: "Sessions refused because the recordings of their namespaces were full",
      registers,
    }),
    freeSpace: new Gauge({
      name: "gatehouse_database_free_bytes",
      help: "Free space for the SQLite database: of its file system, and in its file; 0 with PostgreSQL",
      registers,
    }),
  };
}
