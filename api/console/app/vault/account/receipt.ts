import { useEffect, useState } from 'preact/hooks'
import { callWithKey } from '#api/console/app/api-call.ts'
import { formatCount, formatDateTime } from '#api/console/app/format.ts'
import { hrefTo, navigate } from '#api/console/app/hash-route.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { copyButton } from '#api/console/app/parts/copy-button.ts'
import { onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { queryView } from '#api/console/app/parts/query-view.ts'
import { table } from '#api/console/app/parts/table.ts'
import { useQuery } from '#api/console/app/use-query.ts'
import { erasedCounts, isSigned } from '#api/console/app/vault/account/receipt-signature.ts'
import type { Erasure } from '#api/contract/generated/types.ts'

const pollIntervalMs = 1_500

/**
 * How an erasure stands, and its receipt. No key is needed.
 *
 * @param id of the receipt; undefined asks for it
 */
export function Receipt({ id }: { id: string | undefined }): View {
  return html`<div class="door">
    <main class="door-card door-wide">
      ${page({
        title: 'Receipt of an erasure',
        description: 'What was erased, and when, signed by this service.',
        children:
          id === undefined ? renderComponent(AskForId, {}) : renderComponent(OneReceipt, { id }),
      })}
    </main>
    <footer class="door-foot"><a href=${hrefTo()}>Sign in</a></footer>
  </div>`
}

function AskForId(): View {
  const [id, setId] = useState('')
  return html`<form class="stack" onSubmit=${onSubmit(() => navigate('receipt', id.trim()))}>
    ${textField({ label: 'Number of the receipt', value: id, onValue: setId, required: true, autocomplete: 'off' })}
    <button class="button button-main">Show</button>
  </form>`
}

function OneReceipt({ id }: { id: string }): View | null {
  const erasure = useQuery(
    signal => callWithKey('', 'GET /v1/receipts/:receiptId', { params: { receiptId: id } }, signal),
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
    ${receipt !== null && renderComponent(SignedReceipt, { receipt })}
  </div>`

function SignedReceipt({ receipt }: { receipt: string }): View {
  const signature = useQuery(
    async signal => {
      const { keys } = await callWithKey('', 'GET /v1/receipts/key', {}, signal)
      return isSigned(receipt, keys)
    },
    [receipt],
  )
  return html`<div class="stack-wide">
    ${section(
      'What went',
      table(
        ['Kind', 'Erased'],
        erasedCounts(receipt).map(([kind, count]) => [kind, formatCount(count)]),
      ),
    )}
    ${section(
      'The receipt itself',
      html`<p>${signature.answer === undefined ? '' : signatureChip(signature.answer)}</p>
        <pre class="code" tabindex="0">${receipt}</pre>`,
      copyButton({ label: 'Copy the receipt', text: receipt }),
    )}
  </div>`
}

const signatureChip = (isValid: boolean | null): View =>
  isValid === null
    ? chip('Not checked: this browser cannot', 'plain')
    : isValid
      ? chip('The signature is valid', 'good')
      : chip('The signature is not valid', 'bad')
