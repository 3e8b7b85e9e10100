import { PassThrough } from 'node:stream'
import t from 'tap'
import { openProgressDisplay } from '#scripts/clients/upload/progress-bar.ts'

const totals = { lines: 10, stored: 10, replaced: 0, skipped: 0, failed: 0, errors: [] }

function displayOn(isTTY: boolean) {
  const stream = new PassThrough({ encoding: 'utf8' })
  const clock = { ms: 0 }
  const terminal = Object.assign(stream, { isTTY, columns: 200 }) as unknown as NodeJS.WriteStream
  const display = openProgressDisplay(terminal, 'lines', () => clock.ms)
  return { display, clock, written: () => String(stream.read() ?? '') }
}

t.test('a terminal has a bar with the time that is left', async t => {
  const { display, clock, written } = displayOn(true)
  display.progress({ share: 0.5, totals })
  t.match(written(), /█░+ {2}50% {2}10 lines/, 'nothing is known yet')
  clock.ms = 60_000
  display.partDone({ share: 0.6, totals })
  t.match(written(), /60% {2}4:00 left {2}10 lines/, 'as fast as since this run began')
  clock.ms = 3_600_000
  display.progress({ share: 0.75, totals })
  t.match(written(), /75% {2}1:00:00 left/)
  display.partDone({ share: 1, totals })
  t.match(written(), /100% {2}10 lines/)
})

t.test('what is no terminal has the notes alone', async t => {
  const { display, written } = displayOn(false)
  display.progress({ share: 0.5, totals })
  display.note('Going on after line 5')
  display.partDone({ share: 1, totals })
  display.close()
  t.equal(written(), 'Going on after line 5\n')
})
