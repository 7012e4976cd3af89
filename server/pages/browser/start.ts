interface Info {
  readonly version: string;
  readonly setup: boolean;
}

/** Fills the start page with the state of the service. */
async function showState(): Promise<void> {
  const [health, info] = await Promise.all([call("GET", "api/healthcheck"), call("GET", "api/info")]);
  // `info` asks the database, `healthcheck` does not.
  const works = health.status === 200 && info.status === 200;
  byId("health").textContent = works ? "works" : "does not work: ask whoever runs it";
  if (info.status !== 200) return;
  const { version, setup } = info.body as Info;
  byId("version").textContent = version;
  byId("no-user").hidden = setup;
}
