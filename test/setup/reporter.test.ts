import { text } from 'node:stream/consumers'
import { stripVTControlCharacters } from 'node:util'
import t, { type Test } from 'tap'
import Report from '#test/setup/reporter.ts'

/** What the reporter prints for some TAP, and the exit code it asks for. */
async function reported(t: Test, ...lines: string[]): Promise<{ output: string; code: unknown }> {
  const before = process.exitCode
  t.teardown(() => (process.exitCode = before))
  process.exitCode = undefined
  const report = new Report()
  report.end(['TAP version 14', ...lines, ''].join('\n'))
  const output = stripVTControlCharacters(await text(report))
  const code = process.exitCode
  process.exitCode = before
  return { output, code }
}

const lastLine = (output: string) => output.trimEnd().split('\n').at(-1)

t.test('assertions are counted, not the subtests around them', async t => {
  const { output, code } = await reported(
    t,
    '# Subtest: test/a.test.ts',
    '    # Subtest: a rule',
    '        ok 1 - first',
    '        ok 2 - second',
    '        1..2',
    '    ok 1 - a rule # time=3ms',
    '    ok 2 - later # SKIP not here',
    '    ok 3 - one day # TODO',
    '    1..3',
    'ok 1 - test/a.test.ts # time=12.4ms',
    '1..1',
  )
  t.equal(output, '✓ test/a.test.ts (12 ms)\n\n2 passed, 0 failed, 2 skipped\n')
  t.equal(code, undefined)
})

t.test('a failure is counted once and printed with its path and difference', async t => {
  const { output, code } = await reported(
    t,
    '# Subtest: test/a.test.ts',
    '    # Subtest: a rule',
    '        not ok 1 - should be equal',
    '          ---',
    '          diff: |',
    '            -1',
    '            +2',
    '          at:',
    '            fileName: test/a.test.ts',
    '          ...',
    '        1..1',
    '    not ok 1 - a rule',
    '    1..1',
    'not ok 1 - test/a.test.ts # time=5ms',
    '1..1',
  )
  t.match(output, '✗ test/a.test.ts (5 ms)\n\n✗ test/a.test.ts > a rule > should be equal\ndiff:')
  t.notMatch(output, 'fileName')
  t.equal(lastLine(output), '0 passed, 1 failed, 0 skipped')
  t.equal(code, 1)
})

t.test('a file that breaks off fails, also after passed tests', async t => {
  const { output } = await reported(
    t,
    '# Subtest: test/a.test.ts',
    '    ok 1 - fine',
    '    1..1',
    'not ok 1 - test/a.test.ts # time=5ms',
    '  ---',
    '  exitCode: 3',
    '  ...',
    '1..1',
  )
  t.match(output, '✗ test/a.test.ts\nexitCode: 3')
  t.equal(lastLine(output), '1 passed, 1 failed, 0 skipped')
})

t.test('a test that asserts nothing fails, a file that says why it does not does not', async t => {
  const { output, code } = await reported(
    t,
    '# Subtest: test/a.test.ts',
    '    # Subtest: forgotten',
    '        1..0',
    '    ok 1 - forgotten # time=1ms',
    '    1..1',
    'ok 1 - test/a.test.ts # time=5ms',
    '# Subtest: test/b.test.ts',
    '    1..0 # needs macOS',
    'ok 2 - test/b.test.ts # SKIP needs macOS',
    '1..2',
  )
  t.match(output, '✗ test/a.test.ts > forgotten\nasserts nothing')
  t.match(output, '- test/b.test.ts')
  t.equal(lastLine(output), '0 passed, 1 failed, 1 skipped')
  t.equal(code, 1)
})

t.test('what a test prints is shown', async t => {
  const { output } = await reported(
    t,
    '# Subtest: test/a.test.ts',
    '    hello',
    '    ok 1 - fine',
    '    1..1',
    'ok 1 - test/a.test.ts',
    '1..1',
  )
  t.match(output, 'hello\n')
  t.equal(lastLine(output), '1 passed, 0 failed, 0 skipped')
})

t.test('a bail-out fails', async t => {
  const { output, code } = await reported(t, 'ok 1 - fine', 'Bail out! no database')
  t.match(output, 'Bail out! no database')
  t.equal(lastLine(output), '1 passed, 1 failed, 0 skipped')
  t.equal(code, 1)
})
