import { useEffect, useState } from 'preact/hooks'
import { hrefTo, navigate } from '#api/console/app/address.ts'
import { clientWith } from '#api/console/app/api-call.ts'
import { formatCount, formatDateTime } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button, copyButton } from '#api/console/app/parts/buttons.ts'
import { table } from '#api/console/app/parts/chart.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { queryView } from '#api/console/app/parts/notes.ts'
import { useQuery } from '#api/console/app/queries.ts'
import type { Erasure } from '#api/contract/generated/types.ts'

const pollIntervalMs = 1_500

/**
 * How an erasure stands, and its receipt. No key is needed.
 *
 * @param id of the receipt; undefined asks for it
 */
export const Receipt = ({ id }: { id: string | undefined }): View =>
  html`<div class="door">
    <main class="door-card door-wide">
      ${page({
        title: 'Receipt of an erasure',
        description: 'What was erased, and when, signed by this service.',
        children:
          id === undefined ? renderComponent(AskForId, {}) : renderComponent(OneReceipt, { id }),
      })}
    </main>
    <footer class="door-foot chips"><a href=${hrefTo()}>Sign in</a></footer>
  </div>`

function AskForId(): View {
  const [id, setId] = useState('')
  return html`<form class="stack" onSubmit=${onSubmit(() => navigate('receipt', id.trim()))}>
    ${textField({ label: 'Number of the receipt', value: id, onValue: setId, required: true, autocomplete: 'off' })}
    ${button('Show', undefined, { kind: 'main' })}
  </form>`
}

function OneReceipt({ id }: { id: string }): View | null {
  const erasure = useQuery(
    signal =>
      clientWith({ key: '' }).call(
        'GET /v1/receipts/:receiptId',
        { params: { receiptId: id } },
        { signal },
      ),
    [id],
  )
  const isErasing = erasure.answer?.status === 'erasing'
  useEffect(() => {
    if (!isErasing || erasure.isLoading) return undefined
    const timer = setTimeout(erasure.refetch, pollIntervalMs)
    return () => clearTimeout(timer)
  }, [isErasing, erasure.isLoading])
  return queryView(erasure, 'the receipt', erasureView)
}

const erasureView = ({ receipt_id, status, requested_at, finished_at, receipt }: Erasure): View =>
  html`<div class="stack-wide" aria-live="polite">
    <div class="stack">
      <p>
        ${status === 'erased' ? chip('Erased', 'good') : chip('Being erased', 'busy')}
        <code> ${receipt_id}</code>
      </p>
      ${
        status === 'erasing' &&
        html`<progress aria-label="Progress of the erasure"></progress>
          <p class="quiet">The keys stopped already. Keep the address of this page.</p>`
      }
      <p class="quiet">
        ${`Asked for on ${formatDateTime(requested_at)}`}${finished_at && `, finished on ${formatDateTime(finished_at)}`}
      </p>
    </div>
    ${receipt !== null && signedReceipt(receipt)}
  </div>`

const signedReceipt = (receipt: string): View =>
  html`<div class="stack-wide">
    ${section('What went', table(['Kind', 'Erased'], erasedCounts(receipt)))}
    ${section(
      'The receipt itself',
      html`<p class="quiet">
          A JSON Web Token. The keys that verify its signature are at${' '}
          <a href="/v1/receipts/key">/v1/receipts/key</a>.
        </p>
        <pre class="code" tabindex="0">${receipt}</pre>`,
      copyButton('Copy the receipt', receipt),
    )}
  </div>`

/** How much was erased, by kind, most first. */
function erasedCounts(receipt: string): string[][] {
  const payload = atob(receipt.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/'))
  const { erased } = JSON.parse(payload) as { erased: Record<string, number> }
  return Object.entries(erased)
    .toSorted(([, one], [, other]) => other - one)
    .map(([kind, count]) => [kind.replaceAll('_', ' '), formatCount(count)])
}
