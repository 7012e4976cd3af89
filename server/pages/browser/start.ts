interface Info {
  readonly version: string;
  readonly setup: boolean;
  readonly endpoints: { readonly ssh: string };
}

/** Fills the start page with the status of the service. */
async function showState(): Promise<void> {
  const [health, info] = await Promise.all([call("GET", "api/healthcheck"), call("GET", "api/info")]);
  // Also call `info`, because only this operation reads the database.
  const operational = health.status === 200 && info.status === 200;
  byId("health").textContent = operational
    ? "operational"
    : "unavailable. Contact the operator of the service.";
  if (info.status !== 200) return;
  const { version, setup, endpoints } = info.body as Info;
  const [, host = endpoints.ssh, port = "22"] = /^(.*?):(\d+)$/.exec(endpoints.ssh) ?? [];
  byId("host").textContent = host;
  byId("port").textContent = port === "22" ? "" : `-p ${port} `;
  byId("version").textContent = version;
  byId("no-user").hidden = setup;
}
