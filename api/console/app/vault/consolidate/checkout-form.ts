import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { formatTime, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { onSubmit, selectField } from '#api/console/app/parts/fields.ts'
import { section } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, queryView } from '#api/console/app/parts/query-view.ts'
import { useAddress } from '#api/console/app/use-address.ts'
import { useAction, useQuery } from '#api/console/app/use-query.ts'
import { heldBatch, type HeldBatch } from '#api/console/app/vault/consolidate/held-batch.ts'
import { debtMeter } from '#api/console/app/vault/debt-meter.ts'
import { fetchDebt } from '#api/console/app/vault/vault-status.ts'

const firstChoice = { tier: '1', tokens: '' }

const sizes = [
  ['', 'as the service advises'],
  ['5000', 'up to 5,000 tokens'],
  ['20000', 'up to 20,000 tokens'],
  ['100000', 'up to 100,000 tokens'],
] as const

/** What waits to be consolidated, and the form that checks out a batch of it. */
export function CheckoutForm({ onHeld }: { onHeld: (held: HeldBatch) => void }): View {
  const { fields, setFields } = useAddress(firstChoice)
  const [nothing, setNothing] = useState(false)
  const debt = useQuery(fetchDebt, [])
  const actionState = useAction()
  const held = heldBatch()
  const checkOut = async (): Promise<void> => {
    const batch = await call('POST /v1/memory/consolidate/checkout', {
      body: {
        tier: fields.tier === '2' ? 2 : 1,
        ...(fields.tokens && { max_tokens: Number(fields.tokens) }),
      },
    })
    setNothing(batch.batch_id === null)
    if (batch.batch_id !== null) onHeld({ batch, proposals: [] })
  }
  const set = (changed: Partial<typeof firstChoice>): void => {
    setNothing(false)
    setFields({ ...fields, ...changed }, { replace: true })
  }
  return html`<div class="stack-wide">
    ${held && heldNote(held, () => onHeld(held))}
    ${section('Waiting to be consolidated', queryView(debt, 'what waits', debtMeter))}
    <form class="panel stack" onSubmit=${onSubmit(() => actionState.run(checkOut))}>
      <div class="filters">
        ${selectField({
          label: 'Make',
          value: fields.tier,
          onValue: tier => set({ tier }),
          choices: [
            ['1', 'reflections, of raw memories'],
            ['2', 'high-level reflections, of reflections'],
          ],
        })}
        ${selectField({
          label: 'Size of the batch',
          value: fields.tokens,
          onValue: tokens => set({ tokens }),
          choices: sizes,
        })}
      </div>
      <p class="quiet">
        The oldest memories come first. They are lent for 15 minutes, and billed as memories that
        are read.
      </p>
      ${faultNote(actionState.fault)}
      <div class="actions">
        <button class="button button-main" disabled=${actionState.isRunning}>
          ${actionState.isRunning ? 'Working …' : 'Check out a batch'}
        </button>
      </div>
    </form>
    <div aria-live="polite">
      ${nothing && emptyNote('Nothing can be checked out', 'A reflection covers all memories of this tier, or they are lent already.')}
    </div>
  </div>`
}

const heldNote = ({ batch }: HeldBatch, resume: () => void): View =>
  html`<div class="notice stack">
    <p>
      A batch of ${pluralize(batch.count, 'memory', 'memories')} is lent to you until${' '}
      ${formatTime(batch.lease_expires_at)}.
    </p>
    <div class="actions">
      <button type="button" class="button" onClick=${resume}>Continue with it</button>
    </div>
  </div>`
