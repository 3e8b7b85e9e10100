import { html } from '#api/edge/html.ts'

/**
 * The console may load its own files only: no inline script or style, no form that is submitted, and no
 * text that becomes markup, since `require-trusted-types-for` makes `innerHTML` throw.
 */
export const consolePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
  "require-trusted-types-for 'script'; trusted-types 'none'"

/** The mark as a data address; its name space is escaped, since the page names no other host. */
export const favicon = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect x="1" y="1" width="22" height="22" rx="6" fill="#0b6b70"/><g fill="none" stroke="#fff" stroke-width="2"><circle cx="12" cy="12" r="6"/><path d="M12 3.5v4M12 16.5v4M3.5 12h4M16.5 12h4"/></g><circle cx="12" cy="12" r="2" fill="#fff"/></svg>',
)}`

type PageParts = {
  title: string
  /** The module that draws the page. */
  module: string
  /** Modules that the first view needs, by path. */
  preloadPaths: readonly string[]
  /** The name of the login provider; null for none. */
  login: string | null
}

/** A page that its module draws. */
export const consolePage = ({
  title,
  module,
  preloadPaths,
  login,
}: PageParts): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>${login === null ? '' : html` <meta name="login" content="${login}" />`.text}
<link rel="icon" href="${favicon}">
<link rel="stylesheet" href="/console/style.css">
${preloadPaths.map(path => `<link rel="modulepreload" href="${path}">`).join('\n')}
</head>
<body>
<div id="console"></div>
<noscript>This page needs JavaScript.</noscript>
<script type="module" src="${module}"></script>
</body>
</html>
`
