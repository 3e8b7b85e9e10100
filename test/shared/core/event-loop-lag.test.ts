import { createRequire } from 'node:module'
import { setTimeout as delay } from 'node:timers/promises'
import { Registry } from 'prom-client'
import t from 'tap'
import { eventLoopLagNames, registerEventLoopLag } from '#shared/core/event-loop-lag.ts'
import { registry } from '#shared/core/metrics.ts'

const { metricNames } = createRequire(import.meta.url)(
  'prom-client/lib/metrics/eventLoopLag.js',
) as {
  metricNames: string[]
}

function holdEventLoop(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

const seconds = async (metrics: Registry, name: string): Promise<number> =>
  Number(new RegExp(`^${name} (.+)$`, 'm').exec(await metrics.metrics())?.[1])

const longest = 'nodejs_eventloop_lag_max_seconds'

t.test('the delays of the event loop are measured between two scrapes', async t => {
  const metrics = new Registry()
  registerEventLoopLag(metrics)
  await delay(20)
  holdEventLoop(300)
  await delay(20)
  t.equal(await seconds(metrics, longest), 0, 'nothing is measured before the first scrape')
  await delay(20)
  holdEventLoop(300)
  await delay(20)
  t.ok((await seconds(metrics, longest)) >= 0.29)
  t.ok((await seconds(metrics, 'nodejs_eventloop_lag_p50_seconds')) > 0)
})

t.test('a process has each of the metrics that prom-client has, and one of each', async t => {
  t.same(eventLoopLagNames.toSorted(), metricNames.toSorted())
  const text = await registry.metrics()
  for (const name of metricNames) t.equal(text.split(`\n${name} `).length, 2, name)
})
