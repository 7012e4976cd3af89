import type { Duplex } from "node:stream";
import type { Client, ClientChannel } from "ssh2";
import {
  failureReason,
  OutageError,
  type RequestedTerminal,
  type TerminalSize,
  UnreachableError,
} from "../protocol.ts";
import { ignoreErrors, passOn, relieved, write } from "./bounds.ts";
import { DeviceLogin, reportLogin, reportRefusal } from "./DeviceLogin.ts";
import type { ServiceClient } from "./ServiceClient.ts";

/** Channel number in the recorded entries of a web terminal. A web terminal has only one channel. */
const SEAT = 0;
const TERM = "xterm";

/** The message that a browser shows for every refused login. */
const DENIED = "Permission denied";

/** A connection to a device, and the shell opened over it. */
interface Device {
  readonly client: Client;
  readonly shell: ClientChannel;
}

/**
 * A terminal in a browser. The service forwards the bytes of the terminal, and the gateway process treats the terminal
 * like an SSH client.
 */
export class WebTerminal {
  readonly #service: ServiceClient;
  readonly #requested: RequestedTerminal;
  readonly #browser: Duplex;
  #size: TerminalSize;
  #login: DeviceLogin | undefined;
  #device: Device | undefined;
  #isResizing = false;

  /** @param browser the stream of the browser's input and output */
  constructor(service: ServiceClient, requested: RequestedTerminal, browser: Duplex) {
    this.#service = service;
    this.#requested = requested;
    this.#browser = browser;
    this.#size = requested.size;
    browser.on("close", () => void this.#login?.finish());
  }

  /** Logs in to the device and opens a shell. If the login or the shell fails, shows the reason in the terminal. */
  async open(): Promise<void> {
    try {
      await this.#open();
    } catch (error) {
      const isKnown = error instanceof UnreachableError || error instanceof OutageError;
      if (!isKnown) this.#service.log.error({ err: error }, "cannot open a web terminal");
      // Report that a device cannot be reached only if the browser has proved its key.
      this.#browser.end(isKnown && this.#requested.password === undefined ? failureReason(error) : DENIED);
    }
  }

  /**
   * Closes the terminal of a browser that has disconnected. While the device reads no input, the gateway process cannot
   * detect the disconnect itself.
   */
  leave(): void {
    this.#browser.destroy();
  }

  resize(size: TerminalSize): void {
    this.#size = size;
    const { width: columns, height: rows } = size;
    void this.#resizeShell();
    this.#login?.recorder.event(SEAT, "window-change", { columns, rows, width: 0, height: 0 });
  }

  /** Sends the latest terminal size to the device, after the device has read all earlier data. */
  async #resizeShell(): Promise<void> {
    if (this.#device === undefined || this.#isResizing) return;
    const { client, shell } = this.#device;
    this.#isResizing = true;
    await relieved(client);
    this.#isResizing = false;
    shell.setWindow(this.#size.height, this.#size.width, 0, 0);
  }

  async #open(): Promise<void> {
    const { admission, username, password, address, key, userId } = this.#requested;
    const credential = password === undefined ? "key" : "password";
    const attempt = { entry: "web", credential, username, address } as const;
    if ("refused" in admission) {
      reportRefusal(this.#service, attempt, admission);
      this.#browser.end(DENIED);
      return;
    }
    const { device } = admission;
    const admitted = { device, username, address, key, userId, type: "web" } as const;
    const login = new DeviceLogin(this.#service, admitted, {
      end: (reason) => void this.#browser.end(`\r\n${reason}\r\n`),
      notify: (text) => void this.#browser.write(`\r\n${text}\r\n`),
    });
    this.#login = login;
    const client = await reportLogin(this.#service, { ...attempt, login }, () =>
      password === undefined ? login.byKey() : login.byPassword(password),
    );
    if (client === undefined) {
      this.#browser.end(DENIED);
      void login.finish();
      return;
    }
    this.#openShell(client, login);
  }

  #openShell(client: Client, login: DeviceLogin): void {
    const opened = this.#size;
    const { width, height } = opened;
    login.recorder.describe("web", TERM);
    login.recorder.event(SEAT, "pty-req", { term: TERM, columns: width, rows: height, width: 0, height: 0 });
    client.shell({ term: TERM, cols: width, rows: height, width: 0, height: 0 }, (error, shell) => {
      if (error) this.#browser.end("The device did not open a shell");
      else this.#run(login, { client, shell }, opened);
    });
  }

  #run(login: DeviceLogin, device: Device, opened: TerminalSize): void {
    this.#device = device;
    const { shell } = device;
    if (this.#size !== opened) void this.#resizeShell();
    const { announcement } = login.admitted.device;
    if (announcement !== "") this.#browser.write(announcement);
    login.recorder.event(SEAT, "shell", {});
    ignoreErrors(shell);
    const output = passOn(shell, async (data) => {
      await login.recorder.record(SEAT, "stdout", data, this.#size);
      await write(this.#browser, data);
    });
    void output.then(() => this.#browser.end());
    void passOn(this.#browser, (input) => {
      login.noteActivity();
      return write(shell, input);
    });
  }
}
