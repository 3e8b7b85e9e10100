import t from 'tap'

// Before the formatters are made: west of Greenwich a UTC day begins on the local day before it.
process.env.TZ = 'America/Los_Angeles'
const { formatShortDay, formatUtcDay } = await import('#api/console/app/format.ts')
const { bucketDays } = await import('#api/console/app/vault/day-buckets.ts')

t.test('a UTC day has its own name in every time zone', async t => {
  t.equal(formatShortDay('2026-01-30'), '29 Jan 2026', 'a moment is told in local time')
  t.equal(formatUtcDay('2026-01-30'), '30 Jan 2026')
  t.equal(formatUtcDay(Date.parse('2026-01-30')), '30 Jan 2026')
})

t.test('the bars of the vault are named after their days', async t => {
  const counts = { raw: 1, reflections: 0 }
  const labelsOf = (...days: string[]) =>
    bucketDays(days.map(day => ({ day, ...counts }))).buckets.map(({ label }) => label)
  t.same(labelsOf('2026-01-30', '2026-01-31'), ['30 Jan 2026', '31 Jan 2026'])
  t.equal(labelsOf('2026-01-05', '2026-12-01')[0], 'Week of 5 Jan 2026')
})
