import t from 'tap'
import { describeChange } from '#api/console/app/vault/event-change.ts'

t.test('a change says what was before, and none where there was nothing', t => {
  const before = { daily_requests: null }
  const after = { daily_requests: 500, monthly_dollars: 20 }
  t.equal(
    describeChange({ before, after }).details,
    'daily requests: none → 500, monthly dollars: none → 20',
  )
  t.match(describeChange({ before: after, after: before }).details, /dollars: 20 → none$/)
  t.equal(describeChange({ after: { monthly_dollars: 20 } }).details, 'monthly dollars: 20')
  t.end()
})
