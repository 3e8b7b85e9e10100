import t from 'tap'
import { parseSamples, sumSamples } from '#api/console/app/service/prometheus-samples.ts'

t.test('samples of metrics: names with digits, labels and none', async t => {
  const samples = parseSamples(`# HELP vault_recent_request_p95_seconds Time
vault_recent_request_p95_seconds 0.25
vault_recalls_total{way="search",status="ok"} 3
vault_recalls_total{way="proxy",status="degraded"} 2
`)
  t.equal(sumSamples(samples, 'vault_recent_request_p95_seconds'), 0.25)
  t.equal(sumSamples(samples, 'vault_recalls_total'), 5)
  t.equal(
    sumSamples(samples, 'vault_recalls_total', ({ status }) => status === 'degraded'),
    2,
  )
})
