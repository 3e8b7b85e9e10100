import { useState } from 'preact/hooks'
import { canWrite } from '#api/console/app/credential.ts'
import { formatTime } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote } from '#api/console/app/parts/query-view.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { BatchView } from '#api/console/app/vault/consolidate/batch-view.ts'
import { CheckoutForm } from '#api/console/app/vault/consolidate/checkout-form.ts'
import { CommittedView } from '#api/console/app/vault/consolidate/committed-view.ts'
import {
  heldBatch,
  holdBatch,
  type HeldBatch,
} from '#api/console/app/vault/consolidate/held-batch.ts'
import type { CommitAnswer } from '#api/contract/generated/types.ts'

/** Checks out memories, has a model of the person's choice write reflections of them, and commits these. */
export const Consolidate = (): View =>
  page({
    title: 'Consolidate',
    description: 'Your model turns what was said into reflections; you decide what is stored.',
    children: canWrite()
      ? renderComponent(Steps, {})
      : emptyNote('This key only reads', 'Consolidating needs a key that may read and write.'),
  })

function Steps(): View {
  const [held, setHeld] = useState<HeldBatch | undefined>(heldBatch)
  const [answer, setAnswer] = useState<CommitAnswer>()
  const hold = (batch: HeldBatch): void => {
    holdBatch(batch)
    setHeld(batch)
  }
  if (held && answer) {
    const next = (): void => {
      setHeld(undefined)
      setAnswer(undefined)
    }
    return renderComponent(CommittedView, { held, answer, onNext: next })
  }
  if (!held) return renderComponent(CheckoutForm, { onHeld: hold })
  return html`<div>
    ${renderComponent(BatchView, {
      ...held,
      key: held.batch.batch_id,
      updateProposals: update =>
        setHeld(before => {
          const after = before && { ...before, proposals: update(before.proposals) }
          holdBatch(after)
          return after
        }),
      onCommitted: committed => {
        holdBatch(undefined)
        setAnswer(committed)
      },
      onReleased: () => {
        setHeld(undefined)
        showToast(`Its memories wait again from ${formatTime(held.batch.lease_expires_at)} on.`)
      },
    })}
  </div>`
}
