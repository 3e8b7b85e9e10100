// Loaded before a web process of the bench (`node --import`): measures how long its event loop is held.
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** The timer of the measurement; a turn is what it is late by. */
const resolutionMs = 1
const histogram = monitorEventLoopDelay({ resolution: resolutionMs })
histogram.enable()

process.on('message', (message: { turns?: 'reset' | 'read' }) => {
  if (message.turns === 'reset') histogram.reset()
  if (message.turns === 'read') process.send?.({ longestMs: histogram.max / 1e6 - resolutionMs })
})
// The listener alone must not hold the process.
process.channel?.unref()
