import type { Services } from "../../services.ts";

/**
 * Returns a link for a mail. The origin of the link comes from the settings, and never from a request. An attacker who
 * could choose the origin would receive the token in the link.
 * @throws Error the public URL is not set
 */
export function mailedLink(
  { settings }: Pick<Services, "settings">,
  path: string,
  parameters: Readonly<Record<string, string>>,
): string {
  if (settings.publicUrl === undefined)
    throw new Error("cannot create a link in a mail: GATEHOUSE_PUBLIC_URL is not set");
  return linkAt(settings.publicUrl, path, parameters);
}

/**
 * Returns a link for a mail that all editions send. If the public URL is not set, returns only the path of the page.
 */
export function pageLink(
  services: Pick<Services, "settings">,
  path: string,
  parameters: Readonly<Record<string, string>>,
): string {
  if (services.settings.publicUrl !== undefined) return mailedLink(services, path, parameters);
  return `${path}?${new URLSearchParams(parameters)}`;
}

/** Returns a link to a page of the service, with the given origin. */
export function linkAt(origin: string, path: string, parameters: Readonly<Record<string, string>>): string {
  const url = new URL(path, origin);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}
