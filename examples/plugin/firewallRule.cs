using System.Collections.Generic;
using System.Linq;
using Pulumi;
using Gatehouse = Pulumi.Gatehouse;

return await Deployment.RunAsync(() => 
{
    var office = new Gatehouse.FirewallRule("office", new()
    {
        Action = Gatehouse.FirewallRuleAction.Allow,
        Priority = 20,
        SourceIp = "^192\\.0\\.2\\.",
        Username = ".*",
        Filter = new Gatehouse.Inputs.FirewallRuleFilterArgs
        {
            Hostname = "^db-0[12]$",
        },
    });

    var elsewhere = new Gatehouse.FirewallRule("elsewhere", new()
    {
        Action = Gatehouse.FirewallRuleAction.Deny,
        Priority = 10,
        SourceIp = ".*",
        Username = ".*",
        Filter = new Gatehouse.Inputs.FirewallRuleFilterArgs
        {
            Hostname = "^db-0[12]$",
        },
    });

});

