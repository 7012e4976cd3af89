import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { IdleTimer } from "../../server/gateway/ssh/DeviceLogin.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("calls the function after the given time without activity", () => {
  const idle = vi.fn();
  const timer = new IdleTimer(60_000, idle);
  timer.start();
  for (let times = 0; times < 5; times += 1) {
    vi.advanceTimersByTime(59_000);
    timer.noteActivity();
  }
  vi.advanceTimersByTime(59_999);
  expect(idle).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(idle).toHaveBeenCalledOnce();
});

it("does not call the function without a time limit, or after the timer is stopped", () => {
  const idle = vi.fn();
  for (const limit of [0, 1_000]) {
    const timer = new IdleTimer(limit, idle);
    timer.start();
    timer.stop();
  }
  vi.advanceTimersByTime(60_000);
  expect(idle).not.toHaveBeenCalled();
});
