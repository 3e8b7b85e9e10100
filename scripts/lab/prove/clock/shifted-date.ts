// Loaded before a process of the proof (`node --import`): its wall clock jumps when its launcher says so.
// Timers go on, as they do on a real machine, where they follow another clock.

const RealDate = Date
let shiftMs = 0

class ShiftedDate extends RealDate {
  constructor(...parts: unknown[]) {
    if (parts.length === 0) super(RealDate.now() + shiftMs)
    else super(...(parts as [number]))
  }

  static override now(): number {
    return RealDate.now() + shiftMs
  }
}

globalThis.Date = new Proxy(ShiftedDate, {
  // `Date()` without `new` is a text of the time.
  apply: () => new ShiftedDate().toString(),
}) as unknown as DateConstructor

process.on('message', (message: { shiftMs?: number }) => {
  if (typeof message.shiftMs === 'number') shiftMs = message.shiftMs
})
// The listener alone must not hold the process.
process.channel?.unref()
