import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Gauge, type Registry } from 'prom-client'

type DelayHistogram = ReturnType<typeof monitorEventLoopDelay>

/** As prom-client has it by default. */
const resolutionMs = 10

/** What a scrape shows of the delays since the scrape before. */
const statistics: Record<string, (histogram: DelayHistogram) => number> = {
  min: histogram => histogram.min,
  max: histogram => histogram.max,
  mean: histogram => histogram.mean,
  stddev: histogram => histogram.stddev,
  p50: histogram => histogram.percentile(50),
  p90: histogram => histogram.percentile(90),
  p99: histogram => histogram.percentile(99),
}

const nameOf = (statistic: string): string => `nodejs_eventloop_lag_${statistic}_seconds`

/** Of prom-client's own metrics, under the same names. */
export const eventLoopLagNames = [
  'nodejs_eventloop_lag_seconds',
  ...Object.keys(statistics).map(nameOf),
]

/**
 * Registers the metrics of the event loop that prom-client has, measured from the first scrape on: 100 timers a
 * second were 0.4 % of a core of an idle process without a scraper. The first scrape shows zeros for all but
 * the current lag.
 */
export function registerEventLoopLag(registry: Registry): void {
  const registers = [registry]
  let histogram: DelayHistogram | undefined
  const collectDelays = (): void => {
    if (histogram) {
      // Where there was no delay yet, its numbers are not numbers of seconds.
      if (histogram.count > 0)
        for (const { gauge, read } of gauges) gauge.set(read(histogram) / 1e9)
      return histogram.reset()
    }
    histogram = monitorEventLoopDelay({ resolution: resolutionMs })
    histogram.enable()
  }
  // Before the others: a scrape reads its metrics in the order of their registration.
  const lag = new Gauge({
    name: 'nodejs_eventloop_lag_seconds',
    help: 'Lag of event loop in seconds.',
    registers,
    async collect() {
      collectDelays()
      const startedAt = performance.now()
      await nextTurn()
      lag.set((performance.now() - startedAt) / 1_000)
    },
  })
  const gauges = Object.entries(statistics).map(([statistic, read]) => {
    const help = `Event loop delay, ${statistic}, since the last scrape.`
    return { read, gauge: new Gauge({ name: nameOf(statistic), help, registers }) }
  })
}
