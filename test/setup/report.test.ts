import { Readable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import t from 'tap'
import { Report } from '#test/setup/report.ts'

/** What is printed for the TAP of one process. */
async function printed(...lines: string[]): Promise<{ output: string; ok: boolean }> {
  let output = ''
  const report = new Report(text => (output += text))
  await report.follow(Readable.from([['TAP version 14', ...lines, ''].join('\n')]))
  const ok = report.finish()
  return { output: stripVTControlCharacters(output), ok }
}

const lastLine = (output: string) => output.trimEnd().split('\n').at(-1)

t.test('assertions are counted, not the subtests around them', async t => {
  const { output, ok } = await printed(
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
  t.equal(
    output,
    '✓ test/a.test.ts (12 ms)\n\nskipped: test/a.test.ts > later: not here\n\n2 passed, 0 failed, 2 skipped\n',
  )
  t.ok(ok)
})

t.test('a failure is counted once and printed with its path and difference', async t => {
  const { output, ok } = await printed(
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
  t.notOk(ok)
})

t.test('a test that asserts nothing fails, a file that says why it does not does not', async t => {
  const { output, ok } = await printed(
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
  t.notOk(ok)
})

t.test(
  'a file that passes when it is run again is flaky, and its second result counts',
  async t => {
    let output = ''
    const report = new Report(text => (output += text))
    report.fail('test/a.test.ts', 'its process ended: 1')
    t.same(report.failedFiles(), ['test/a.test.ts'])
    await report.repeat('test/a.test.ts', () =>
      report.follow(
        Readable.from(
          '# Subtest: test/a.test.ts\n    ok 1 - fine\n    1..1\nok 1 - test/a.test.ts\n',
        ),
      ),
    )
    t.ok(report.finish())
    t.match(output, 'flaky: test/a.test.ts\nits process ended: 1')
    t.equal(lastLine(output), '1 passed, 0 failed, 0 skipped')
  },
)

t.test('a run without a test, and a bail-out, fail', async t => {
  t.notOk((await printed('1..0')).ok)
  const { output, ok } = await printed('Bail out! no database')
  t.match(output, 'Bail out! no database')
  t.notOk(ok)
})
