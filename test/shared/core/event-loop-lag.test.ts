import { createRequire } from 'node:module'
import t from 'tap'
import { ProcessRegistry } from '#shared/core/metrics.ts'

const { metricNames } = createRequire(import.meta.url)(
  'prom-client/lib/metrics/eventLoopLag.js',
) as {
  metricNames: string[]
}

t.test("prom-client's own metrics are measured from the first scrape on", async t => {
  const registry = new ProcessRegistry()
  t.same(registry.getMetricsAsArray(), [], 'an idle process without a scraper measures nothing')
  for (const scrape of ['first', 'second']) {
    const text = await registry.metrics()
    for (const name of metricNames)
      t.equal(text.split(`\n${name} `).length, 2, `${name}, ${scrape}`)
  }
})
