"""The style sheet of a report's page: light and dark, from a phone to a wide screen."""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2129; --paper: #fff; --quiet: #5d6672; --line: #d8dde4;
  --panel: #f5f7f9; --good: #d9f2e0; --goodink: #0d5324; --bad: #fbdcdc; --badink: #8d1212;
  --warn: #fdeecb; --warnink: #6b4700; --none: #eceff3; --link: #0b57a4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --paper: #14171c; --quiet: #9aa4b2;
  --line: #333a45; --panel: #1c2129; --good: #153d24; --goodink: #a9e5bd; --bad: #521c1f;
  --badink: #ffc2c2; --warn: #4a3708; --warnink: #fbdf9d; --none: #262c35; --link: #7db8f5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 1rem; color: var(--ink); background: var(--paper);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; margin: .3rem 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
p { margin: .3rem 0; } .quiet { color: var(--quiet); } a { color: var(--link); }
code, pre { font: .86em/1.45 ui-monospace, monospace; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top;
  padding: .35rem .5rem; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--quiet); font-size: .86em; white-space: nowrap; }
td:first-child, dd, li { overflow-wrap: anywhere; } td:first-child { min-width: 11rem; }
.stack td:nth-child(2) { white-space: nowrap; }
.words { table-layout: fixed; } .words td, .words td:nth-child(2) { white-space: normal;
  overflow-wrap: anywhere; } .words small { display: none; } .words th:last-child { width: 40%; }
.mark { display: inline-block; min-width: 1.6em; padding: 0 .35em; border-radius: .3em;
  text-align: center; font-weight: 700; background: var(--none); }
.passed, .optimal, .better { background: var(--good); color: var(--goodink); }
.failed, .crashed, .timeout, .unexpected_pass, .expired, .lost, .wrong_numbers, .error, .odd,
.worse { background: var(--bad); color: var(--badink); }
.expected_failure, .wrong_hardware, .environment, .recompile_advised, .not_built {
  background: var(--warn); color: var(--warnink); }
.invalid_graph, .not_implemented { background: var(--none); }
.odd { outline: 2px solid var(--badink); }
.cross td, .cross th { text-align: center; min-width: 2.6rem; }
.cross td:first-child, .cross th:first-child { text-align: left; min-width: 9rem; }
.cross small { display: block; color: var(--quiet); font-size: .72em; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: 0 .7rem;
  background: var(--panel); }
details details { background: var(--paper); } summary { cursor: pointer; padding: .45rem 0; }
pre { overflow-x: auto; white-space: pre-wrap; padding: .5rem; margin: .3rem 0 .7rem;
  background: var(--paper); border: 1px solid var(--line); max-height: 24rem; overflow-y: auto; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .1rem .8rem;
  margin: .4rem 0; } dt { color: var(--quiet); } dd { margin: 0; }
ol { margin: .4rem 0; padding-left: 1.6rem; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem .9rem; margin: .6rem 0; font-size: .88em; }
@media (max-width: 40rem) {
  body { padding: .6rem; font-size: 14px; }
  .stack thead { display: none; } .stack tr { display: block; padding: .5rem 0;
    border-bottom: 1px solid var(--line); }
  .stack td { display: flex; gap: .6rem; border: 0; padding: .12rem 0; }
  .stack td::before { content: attr(data-of); flex: 0 0 6.5rem; color: var(--quiet); }
  .stack td { overflow-wrap: anywhere; } .stack td:nth-child(2) { white-space: normal; }
  .stack td:first-child::before { content: none; } .stack td:first-child { font-weight: 600; }
  .cross small { display: none; } .cross td:first-child, .cross th:first-child { min-width: 0; }
  .cross .name { display: none; }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: .3rem; }
}
"""
