import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse as parseYaml } from 'tap-yaml'

type Panel = {
  id: number
  title: string
  description?: string
  type: string
  gridPos: { x: number; y: number; w: number; h: number }
  targets: { expr: string }[]
  fieldConfig: { defaults: { thresholds?: { steps: { value: number | null }[] } } }
}

const folder = new URL('../../../scripts/monitoring/', import.meta.url)
const read = (file: string): string => readFileSync(new URL(file, folder), 'utf8')
const { panels } = JSON.parse(read('grafana.json')) as { panels: Panel[] }

t.test('a row of single numbers stands on top, each panel says what it shows', async t => {
  const top = panels.filter(({ gridPos }) => gridPos.y === 0)
  t.equal(top.length, 8)
  t.ok(top.every(({ type, targets }) => type === 'stat' && targets.length === 1))
  t.equal(
    top.reduce((sum, { gridPos }) => sum + gridPos.w, 0),
    24,
    'the whole width',
  )
  t.ok(panels.every(({ type, gridPos }) => type !== 'stat' || gridPos.y === 0))
  for (const { title, description = '' } of panels) {
    t.match(description, /^[\p{Lu}\d].{30,}\.$/u, title)
    t.not(description, title)
  }
  for (const key of ['id', 'title', 'description'] as const)
    t.equal(new Set(panels.map(panel => panel[key])).size, panels.length, `${key} is unique`)
})

t.test('no panel covers another', async t => {
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
  )
  t.equal(new Set(cells).size, cells.length)
  t.ok(panels.every(({ gridPos: { x, w } }) => x + w <= 24))
})

t.test('a number is red from where its alert begins', async t => {
  const alerts = read('alerts.yml')
  let compared = 0
  for (const { title, description = '', fieldConfig } of panels) {
    const [, alert] = /The alert (\w+) begins/.exec(description) ?? []
    if (!alert) continue
    const [, bound] = new RegExp(`alert: ${alert}\\n\\s+expr: .* > ([\\d.]+)\\n`).exec(alerts) ?? []
    t.equal(fieldConfig.defaults.thresholds!.steps.at(-1)!.value, Number(bound), title)
    compared++
  }
  t.equal(compared, 4)
})

t.test('the Prometheus operator gets the same alerts', async t => {
  const rule = new URL('../deploy/kubernetes/components/monitoring/prometheus-rule.yaml', folder)
  const { spec } = parseYaml(readFileSync(rule, 'utf8')) as { spec: object }
  t.same(spec, parseYaml(read('alerts.yml')))
})
