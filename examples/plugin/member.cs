using System.Collections.Generic;
using System.Linq;
using Pulumi;
using Gatehouse = Pulumi.Gatehouse;

return await Deployment.RunAsync(() => 
{
    var staging = new Gatehouse.Namespace("staging", new()
    {
        Name = "staging",
    });

    var carla = new Gatehouse.Member("carla", new()
    {
        Tenant = staging.Tenant,
        Email = "carla@example.com",
        Role = Gatehouse.MemberRole.Operator,
    });

});

